"""The graphs session on the CPU: eagerly against the library's forward pass, and replayed from a recorded capture."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bild_bench.errors import RunError
from bild_bench.models.fast import FastModel
from bild_bench.models.graphs import session as graph_session
from bild_bench.models.graphs.session import GraphModel, GraphSession
from bild_bench.models.graphs.slot import in_blocks, padded
from bild_bench.models.graphs.step import MOST, SIZES, step
from bild_bench.models.layered import LayeredSession
from bild_bench.models.reference import ReferenceModel
from tests.checkpoints import END, VOCABULARY, save_mt5, save_t5
from tests.forward import OTHER_SOURCE, SOURCE, assert_near, library_logits, load, random_tokens
from tests.recorded import FakeCapture, storage, tensors

VARIANTS: dict[str, Callable[[Path], Path]] = {
    "T5 1.0": save_t5,
    "T5 1.1": partial(save_t5, gated=True, tied=False),
    "mT5": save_mt5,
    "one head": partial(save_t5, num_heads=1, d_kv=32),
    "decoder deeper than encoder": partial(save_mt5, num_layers=1, num_decoder_layers=3),
    "wide buckets": partial(save_t5, relative_attention_num_buckets=32, relative_attention_max_distance=128),
}
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}


def graph_model(folder: Path, dtype: str = "float64") -> GraphModel:
    return GraphModel(FastModel(load(folder, dtype), VOCABULARY))


def captured_model(folder: Path, capture: Any, dtype: str = "float64") -> GraphModel:
    """A model that believes it is on CUDA, with a stand-in for its capture."""
    model = graph_model(folder, dtype)
    model._capture, model.why_eager = capture, None
    return model


def in_steps(session: GraphSession, tokens: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Feed tokens in blocks of these sizes; all rows' scores."""
    assert sum(sizes) == len(tokens)
    rows, start = [], session.length
    for size in sizes:
        rows.append(session.extend(tokens[start : start + size]).logits)
        start += size
    return torch.cat(rows)


def source_of(length: int) -> Tensor:
    return torch.tensor([[*random_tokens(length, seed=length)[1:], END]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, tied=False, num_heads=3, num_decoder_layers=3)


@pytest.fixture(scope="module")
def model(folder: Path) -> GraphModel:
    return graph_model(folder)


# The static step against the library


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_are_the_librarys_step_by_step_and_in_blocks(variant: str, dtype: str, tmp_path: Path) -> None:
    VARIANTS[variant](tmp_path)
    tokens = random_tokens(40)
    expected = library_logits(load(tmp_path, dtype), SOURCE, tokens)
    model = graph_model(tmp_path, dtype)
    encoded = model.encode(SOURCE)
    for sizes in ([1] * 40, [40], [3, 1, 5, 1, 2, 16, 12], [17, 23]):
        assert_near(in_steps(model.session(encoded), tokens, sizes), expected, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_no_further_off_than_the_librarys_own(dtype: str, tmp_path: Path) -> None:
    save_t5(tmp_path)
    tokens = random_tokens(24)
    exact = library_logits(load(tmp_path, "float64"), SOURCE, tokens)
    theirs = library_logits(load(tmp_path, dtype), SOURCE, tokens).double()
    model = graph_model(tmp_path, dtype)
    ours = in_steps(model.session(model.encode(SOURCE)), tokens, [1, 7, 16])
    assert ours.dtype == torch.float32
    assert (ours - exact).abs().mean() < 1.5 * (theirs - exact).abs().mean()


def test_half_precision_keeps_one_projection_in_float32_and_clamps(tmp_path: Path) -> None:
    save_t5(tmp_path)
    model = graph_model(tmp_path, "float16")
    layers = model.fast.weights.layers
    assert {layer.ff_out.dtype for layer in layers} == {torch.float32}
    assert {layer.ff_in.dtype for layer in layers} == {torch.float16}
    # The first sub-layer leaves what half precision does not hold: without the clamp infinity, and NaN after the norm.
    layers[0].self_out.fill_(6e4)
    session = model.session(model.encode(SOURCE))
    assert torch.isfinite(session.extend(random_tokens(5)).logits).all()


@pytest.mark.parametrize("length", [2, 63, 64, 65, 128, 129])
def test_a_source_may_end_below_at_or_above_a_block(model: GraphModel, folder: Path, length: int) -> None:
    source, tokens = source_of(length), random_tokens(12)
    session = model.session(model.encode(source))
    assert session._slot.buffers.width == in_blocks(length)
    expected = library_logits(load(folder, "float64"), source, tokens)
    assert_near(in_steps(session, tokens, [1, 3, 8]), expected, 1e-9)


def test_a_long_source_leaves_nothing_to_a_short_one_after_it(model: GraphModel, folder: Path) -> None:
    tokens = random_tokens(8)
    model.session(model.encode(source_of(60))).extend(tokens)
    expected = library_logits(load(folder, "float64"), OTHER_SOURCE, tokens)
    assert_near(model.session(model.encode(OTHER_SOURCE)).extend(tokens).logits, expected, 1e-9)


@pytest.mark.parametrize("room", [1, 40, 128])
def test_scores_do_not_change_where_the_cache_grows(model: GraphModel, folder: Path, room: int) -> None:
    tokens = random_tokens(200)
    expected = library_logits(load(folder, "float64"), SOURCE, tokens)
    for sizes in ([1] * 200, [60, 3, 1, 1, 65, 1, 62, 7], [200]):
        session = model.session(model.encode(SOURCE), room)
        assert_near(in_steps(session, tokens, sizes), expected, 1e-9)
        assert session._slot.buffers.capacity >= 200


def test_a_text_within_its_limit_never_grows(folder: Path) -> None:
    """Padding has positions too: the last block of a text is the one that could need more room."""
    model = graph_model(folder)
    for room in (33, 48, 49, 64):
        session = model.session(model.encode(SOURCE), room)
        before = session._slot.buffers.capacity
        in_steps(session, random_tokens(room + 1), [1] * (room - 8) + [9])
        assert session._slot.buffers.capacity == before
        del session
        model._free.clear()


HISTORY = st.lists(st.tuples(st.integers(0, 150), st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=8)


@given(HISTORY)
@settings(max_examples=40)
def test_after_any_history_the_scores_are_those_of_a_fresh_start(
    model: GraphModel, history: list[tuple[int, int, int]]
) -> None:
    encoded = model.encode(SOURCE)
    session = model.session(encoded, 20)
    fed: list[int] = []
    for cut, count, seed in history:
        session.truncate(cut)
        fed = fed[:cut]
        assert session.length == len(fed)
        new = random_tokens(count, seed)
        rows = session.extend(new)
        fed += new
        assert (session.length, len(rows)) == (len(fed), count)
    expected = model.fast.session(encoded).extend(fed).logits
    assert_near(rows.logits, expected[-count:], 1e-9)


def test_two_sessions_of_one_model_do_not_disturb_each_other(model: GraphModel) -> None:
    sources = [model.encode(SOURCE), model.encode(OTHER_SOURCE)]
    tokens = [random_tokens(70, seed=2), random_tokens(70, seed=3)]
    expected = [model.fast.session(source).extend(fed).logits for source, fed in zip(sources, tokens, strict=True)]
    sessions, found = [model.session(source) for source in sources], [[], []]  # type: ignore[var-annotated]
    for start in range(0, 70, 10):
        for which, session in enumerate(sessions):
            found[which].append(session.extend(tokens[which][start : start + 10]).logits)
    for one, other in zip(found, expected, strict=True):
        assert_near(torch.cat(one), other, 1e-9)


# Rows


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


# Captured steps


@pytest.mark.parametrize("variant", ["T5 1.0", "T5 1.1", "mT5"])
def test_a_replay_reads_all_it_needs_from_static_buffers(variant: str, tmp_path: Path) -> None:
    """The capture sees one text and one position; the replays another source, other ids, other positions."""
    VARIANTS[variant](tmp_path)
    capture = FakeCapture()
    model = captured_model(tmp_path, capture)
    whole, tokens = load(tmp_path, "float64"), random_tokens(60)
    for source in (SOURCE, OTHER_SOURCE, source_of(64)):
        session = model.session(model.encode(source))
        found = in_steps(session, tokens, [1, 1, 2, 3, 5, 8, 16, 20, 4])
        assert_near(found, library_logits(whole, source, tokens), 1e-9)
        session.truncate(17)
        rows = session.extend(tokens[20:25])
        assert_near(rows.logits, library_logits(whole, source, [*tokens[:17], *tokens[20:25]])[17:], 1e-9)
        del session, rows
    assert len(capture.recordings) == len(SIZES), "one slot served all texts"
    assert capture.replays > 30


def test_a_step_touches_nothing_but_its_buffers_and_the_weights(folder: Path) -> None:
    capture = FakeCapture()
    model = captured_model(folder, capture)
    session = model.session(model.encode(SOURCE))
    weights = model.fast.weights
    known = [*vars(session._slot.buffers).values(), weights.embedding, weights.head, weights.final_norm]
    known += [tensor for layer in weights.layers for tensor in vars(layer).values()]
    for recording in capture.recordings:
        assert recording.outside() <= {storage(tensor) for tensor in known}


def test_a_step_run_by_hand_follows_its_input_buffer_alone(folder: Path) -> None:
    """Run once, then change the inputs in place and replay."""
    model = graph_model(folder)
    encoded, capture = model.encode(SOURCE), FakeCapture()
    session = model.session(encoded)
    session.extend([0, 5])
    buffers = session._slot.buffers
    with torch.inference_mode():
        buffers.inputs[:3] = torch.tensor([2, 9, 0])
    replay = capture(lambda: step(model.fast.weights, buffers, 1))
    assert_near(buffers.logits[:1], model.fast.session(encoded).extend([0, 5, 9]).logits[-1:], 1e-9)
    with torch.inference_mode():
        buffers.inputs[:3] = torch.tensor([3, 4, 0])
        replay()
    assert_near(buffers.logits[:1], model.fast.session(encoded).extend([0, 5, 9, 4]).logits[-1:], 1e-9)


def test_the_loop_makes_no_buffers_and_captures_nothing(folder: Path) -> None:
    capture = FakeCapture()
    model = captured_model(folder, capture)
    session = model.session(model.encode(SOURCE))
    slot = session._slot
    pinned = [slot._staged, slot._read]
    before = [tensor.data_ptr() for tensor in [*vars(slot.buffers).values(), *pinned]]
    steps = list(slot._replays.values())
    for _ in range(3):
        for count in range(1, MOST + 1):
            rows = session.extend(random_tokens(count))
            rows.argmax()
            session.truncate(3)
    assert [tensor.data_ptr() for tensor in [*vars(slot.buffers).values(), *pinned]] == before
    assert list(slot._replays.values()) == steps
    assert len(capture.recordings) == len(SIZES)


def test_outside_the_replay_a_step_allocates_nothing(folder: Path) -> None:
    """By torch's own profiler, on rows already captured: ids in, scores out, no tensor made on the way."""
    model = captured_model(folder, lambda run: lambda: None)
    session = model.session(model.encode(SOURCE))
    session.extend([0]).argmax()
    blocks = [random_tokens(count) for count in (1, 2, 7, 16)]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        for tokens in blocks:
            session.extend(tokens).logprob(tokens[1:])
    names = [event.key for event in profile.key_averages()]
    assert "aten::copy_" in names, "ids go in and scores come out by copies"
    assert not [name for name in names if "empty" in name or "clone" in name or "_to_copy" in name], names
    assert sum(max(0, event.self_cpu_memory_usage) for event in profile.key_averages()) == 0


def test_growth_captures_anew_and_keeps_the_text(folder: Path) -> None:
    capture, tokens = FakeCapture(), random_tokens(100)
    model = captured_model(folder, capture)
    session = model.session(model.encode(SOURCE), 20)
    found = in_steps(session, tokens, [10] * 10)
    assert_near(found, library_logits(load(folder, "float64"), SOURCE, tokens), 1e-9)
    assert len(capture.recordings) == 2 * len(SIZES)
    assert session._slot.buffers.capacity == 128
    del session
    # The next text finds the room that this one needed.
    assert model.session(model.encode(SOURCE), 20)._slot.buffers.capacity == 128
    assert len(capture.recordings) == 2 * len(SIZES)


def test_many_texts_need_no_more_slots_than_sessions_open_at_a_time(folder: Path) -> None:
    model = graph_model(folder, "float32")
    for count in range(30):
        first, second = model.session(model.encode(SOURCE)), model.session(model.encode(OTHER_SOURCE))
        assert first.extend([0, 3 + count]).argmax()
        assert second.extend([0]).argmax()
        del first, second
    gc.collect()
    assert {width: len(free) for width, free in model._free.items()} == {64: 2}


# What happens where steps cannot be captured


def test_on_the_cpu_steps_run_eagerly_and_the_reason_is_told(model: GraphModel) -> None:
    assert (model.kind, model.why_eager) == ("graphs-eager", "no CUDA graphs on cpu")


def on_cuda(model: GraphModel, capture: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model finds out at its opening, on a machine with this capture."""
    monkeypatch.setattr(graph_session, "cuda_capture", lambda device: capture)
    monkeypatch.setattr(model, "device", torch.device("cuda"))
    model.why_eager = None
    model._choose()


def test_a_first_capture_that_fails_leaves_eager_steps_and_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(run: Any) -> Any:
        raise RuntimeError("CUDA error: operation not permitted\nwhen stream is capturing")

    model = graph_model(folder)
    on_cuda(model, fails, monkeypatch)
    assert model.kind == "graphs-eager"
    assert model.why_eager == (
        "a step cannot be captured here: RuntimeError: CUDA error: operation not permitted when stream is capturing"
    )
    tokens = random_tokens(9)
    expected = library_logits(load(folder, "float64"), SOURCE, tokens)
    assert_near(model.session(model.encode(SOURCE)).extend(tokens).logits, expected, 1e-9)


def test_where_capture_works_the_first_slot_is_there_before_the_first_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, capture = graph_model(folder), FakeCapture()
    on_cuda(model, capture, monkeypatch)
    assert (model.kind, model.why_eager) == ("graphs", None)
    assert len(capture.recordings) == len(SIZES)
    model.session(model.encode(SOURCE)).extend([0])
    assert len(capture.recordings) == len(SIZES)


def test_a_later_capture_that_fails_is_that_texts_error_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, capture = graph_model(folder), FakeCapture()
    left = 2 * len(SIZES)

    def scarce(run: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise torch.OutOfMemoryError("no memory")
        return capture(run)

    on_cuda(model, scarce, monkeypatch)
    session = model.session(model.encode(source_of(70)))
    tokens = random_tokens(12)
    expected = session.extend(tokens).logits
    with pytest.raises(RunError, match=r"no step for so many tokens can be captured .*no memory.*--session fast"):
        session.extend(random_tokens(300))
    assert session.length == 12
    with pytest.raises(RunError, match="captured"):
        model.session(model.encode(source_of(130)))
    del session
    assert torch.equal(model.session(model.encode(source_of(70))).extend(tokens).logits, expected)
    assert model.kind == "graphs"


# Sizes


@pytest.mark.parametrize(("rows", "expected"), [(1, 1), (2, 2), (3, 4), (5, 8), (8, 8), (9, 16), (16, 16)])
def test_a_block_is_padded_to_the_next_size(rows: int, expected: int) -> None:
    assert padded(rows) == expected


@pytest.mark.parametrize(("length", "expected"), [(0, 64), (1, 64), (64, 64), (65, 128)])
def test_positions_come_in_blocks(length: int, expected: int) -> None:
    assert in_blocks(length) == expected


def test_layers_one_by_one_run_on_the_fast_model_behind(model: GraphModel) -> None:
    """The source is the same object for both, so that one encoding serves all points of a text."""
    encoded, tokens = model.encode(SOURCE), random_tokens(5)
    session = LayeredSession(model.fast, encoded)
    found = []
    for token in tokens:
        session.embed([token])
        for _ in range(session.depth):
            session.run_layer()
        found.append(session.rows().logits)  # type: ignore[attr-defined]
        session.skip_rest()
    assert_near(model.session(encoded).extend(tokens).logits, torch.cat(found), 1e-9)


def test_the_reference_session_says_the_same(model: GraphModel, folder: Path) -> None:
    reference = ReferenceModel(load(folder, "float64"), VOCABULARY, 0)
    theirs, ours = reference.session(reference.encode(SOURCE)), model.session(model.encode(SOURCE))
    for tokens, cut in (([0, 4, 5], 2), ([7], 9), ([8] * 20, 11), ([3, 3], 13)):
        expected, found = theirs.extend(tokens), ours.extend(tokens)
        assert_near(found.logits, expected.logits, 1e-9)
        assert found.argmax() == expected.argmax()
        theirs.truncate(cut)
        ours.truncate(cut)
        assert ours.length == theirs.length


def test_recorded_tensors_are_found_in_nested_arguments() -> None:
    one = torch.ones(2)
    assert tensors(((one, [one]), {"x": 3}))[1] is one
