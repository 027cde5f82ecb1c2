"""What a captured step's rows answer, with how many transfers, and when they must not."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.errors import RunError
from bild_bench.models.graphs.session import GraphModel, GraphSession
from tests.checkpoints import VOCABULARY, save_t5
from tests.forward import SOURCE, random_tokens
from tests.graph_models import graph_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, tied=False, num_heads=3, num_decoder_layers=3)


@pytest.fixture(scope="module")
def model(folder: Path) -> GraphModel:
    return graph_model(folder)


@pytest.mark.parametrize("count", [1, 5, 16, 37])
def test_every_reading_is_what_the_logits_say(model: GraphModel, count: int) -> None:
    encoded, fed = model.encode(SOURCE), random_tokens(count)
    expected = torch.log_softmax(model.fast.session(encoded).extend(fed).logits, dim=-1)
    best = expected.max(dim=-1)
    rows = model.session(encoded).extend(fed)
    assert rows.argmax() == best.indices.tolist()
    assert rows.max_prob() == pytest.approx(best.values.exp().tolist())
    assert rows.last().argmax() == [best.indices[-1].item()]
    assert len(rows.last()) == 1
    torch.testing.assert_close(rows.probs(), expected.exp())
    two = expected.exp().topk(2).values.tolist()
    assert [pair[0] for pair in rows.top_two()] == pytest.approx([pair[0] for pair in two])
    assert [pair[1] for pair in rows.last().top_two()] == pytest.approx([two[-1][1]])
    for first, asked in ((0, fed[1:]), (0, best.indices.tolist()), (count - 1, [7]), (count // 2, fed[: count // 4])):
        chosen = [expected[first + row, token].item() for row, token in enumerate(asked)]
        assert rows.logprob(asked, first) == pytest.approx(chosen)
    assert rows.last().logprob([7]) == pytest.approx([expected[-1, 7].item()])


class Reads:
    """Counts transfers of a slot."""

    def __init__(self, session: GraphSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scores = self.logits = 0
        slot = session._slot
        scores, logits = slot.scores, slot.logits

        def read_scores(count: int) -> Any:
            self.scores += 1
            return scores(count)

        def read_logits(count: int) -> Any:
            self.logits += 1
            return logits(count)

        monkeypatch.setattr(slot, "scores", read_scores)
        monkeypatch.setattr(slot, "logits", read_logits)


def test_what_bild_reads_of_a_step_is_one_transfer(model: GraphModel, monkeypatch: pytest.MonkeyPatch) -> None:
    session, fed = model.session(model.encode(SOURCE)), random_tokens(6)
    reads = Reads(session, monkeypatch)
    rows = session.extend(fed)
    assert (reads.scores, reads.logits) == (0, 0), "an unread step costs no transfer"
    rows.logprob(fed[1:])
    rows.logprob([rows.argmax()[3]], 3)
    rows.max_prob()
    rows.last().max_prob()
    assert (reads.scores, reads.logits) == (1, 0)
    other = next(token for token in range(VOCABULARY) if token not in (rows.argmax()[-1], fed[-1]))
    rows.logprob([other], 5)
    assert (reads.scores, reads.logits) == (1, 1)


def test_an_id_that_is_masked_is_never_answered_from_the_step(model: GraphModel) -> None:
    """It is fed all the same, as a start token may be; asking for its score is a mistake that shows."""
    rows = model.session(model.encode(SOURCE)).extend([0, VOCABULARY + 1, 5])
    assert len(rows.argmax()) == 3
    with pytest.raises((IndexError, RuntimeError)):
        rows.last().logprob([VOCABULARY + 1])


def test_rows_that_were_overwritten_do_not_answer(model: GraphModel) -> None:
    session = model.session(model.encode(SOURCE))
    unread, read = session.extend([0]), session.extend([5])
    ids = read.argmax()
    session.extend([6])
    assert read.argmax() == ids, "what was read stays"
    for reading in (unread.argmax, unread.max_prob, read.probs, partial(unread.logprob, [3])):
        with pytest.raises(RuntimeError, match="not read before the session's next step"):
            reading()


def test_rows_do_not_answer_with_the_next_texts_scores(model: GraphModel) -> None:
    encoded = model.encode(SOURCE)
    session = model.session(encoded)
    rows, slot = session.extend([0]), session._slot
    del session
    assert model.session(encoded)._slot is slot
    with pytest.raises(RuntimeError, match="not read"):
        rows.argmax()


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_scores_that_are_not_finite_are_told(broken: float, tmp_path: Path) -> None:
    model = graph_model(save_t5(tmp_path, tied=False), "float32")
    model.fast.weights.head[7] = broken
    row = model.session(model.encode(SOURCE)).extend([0])
    for reading in (row.argmax, row.max_prob, partial(row.logprob, [3])):
        with pytest.raises(RunError, match="row 0 has no finite best score"):
            reading()


def test_a_text_that_broke_leaves_nothing_to_the_next(folder: Path) -> None:
    model = graph_model(folder, "float32")
    encoded, tokens = model.encode(SOURCE), random_tokens(8)
    expected = model.session(encoded).extend(tokens).logits
    session = model.session(encoded)
    with torch.inference_mode():
        for cache in (session._slot.buffers.keys, session._slot.buffers.values):
            cache.fill_(math.nan)
    del session
    assert torch.equal(model.session(encoded).extend(tokens).logits, expected)
