"""The native session against the library's own forward pass and the fast session, in float32."""

from __future__ import annotations

import gc
import math
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.errors import RunError
from bild_bench.models.fast import FastModel
from bild_bench.models.native.session import NativeModel
from tests.checkpoints import VOCABULARY, save_t5
from tests.forward import OTHER_SOURCE, SOURCE, library_logits, load, random_tokens
from tests.native_models import VARIANTS, assert_near, compiled, in_blocks


@pytest.fixture(scope="module")
def library() -> Any:
    return compiled()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, num_heads=3, d_kv=10, num_decoder_layers=3)


@pytest.fixture(scope="module")
def model(library: Any, folder: Path) -> NativeModel:
    return native_model(library, folder)


def native_model(library: Any, folder: Path) -> NativeModel:
    return NativeModel(library, load(folder, "float32"), VOCABULARY)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_are_the_librarys_whatever_the_threads(library: Any, variant: str, threads: int, tmp_path: Path) -> None:
    VARIANTS[variant](tmp_path)
    tokens = random_tokens(140)
    expected = library_logits(load(tmp_path, "float64"), SOURCE, tokens)
    rounding = (library_logits(load(tmp_path, "float32"), SOURCE, tokens) - expected).abs().max()
    torch.set_num_threads(threads)
    model = native_model(library, tmp_path)
    rows = model.session(model.encode(SOURCE)).extend(tokens)
    assert_near(rows.logits, expected, float(rounding))
    assert rows.argmax() == expected.argmax(dim=-1).tolist()
    assert rows.max_prob() == pytest.approx(torch.softmax(expected, dim=-1).max(dim=-1).values.tolist(), rel=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_blocks_and_single_tokens_agree_bit_for_bit(library: Any, variant: str, tmp_path: Path) -> None:
    VARIANTS[variant](tmp_path)
    model, tokens = native_model(library, tmp_path), random_tokens(40)
    source = model.encode(SOURCE)
    singly = in_blocks(model.session(source), tokens, [1] * 40)
    for sizes in ([40], [2, 3, 4, 5, 6, 7, 8, 5], [9, 17, 14], [1, 38, 1]):
        assert torch.equal(in_blocks(model.session(source), tokens, sizes), singly)


def test_threads_change_nothing(model: NativeModel) -> None:
    tokens, source, found = random_tokens(30), model.encode(SOURCE), []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        rows = model.session(source).extend(tokens)
        found.append((rows.logits, rows.argmax(), rows.max_prob()))
    for logits, ids, probabilities in found[1:]:
        assert torch.equal(logits, found[0][0])
        assert (ids, probabilities) == found[0][1:]


HISTORY = st.lists(st.tuples(st.integers(0, 150), st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=8)


@given(HISTORY)
@settings(max_examples=60)
def test_after_any_history_the_scores_are_those_of_a_fresh_start(
    model: NativeModel, history: list[tuple[int, int, int]]
) -> None:
    encoded = model.encode(SOURCE)
    session = model.session(encoded)
    fed: list[int] = []
    for cut, count, seed in history:
        session.truncate(cut)
        fed = fed[:cut]
        assert session.length == len(fed)
        new = random_tokens(count, seed)
        rows = session.extend(new)
        fed += new
        assert (session.length, len(rows)) == (len(fed), count)
    assert torch.equal(rows.logits, model.session(encoded).extend(fed).logits[-count:])


def test_two_sessions_of_one_model_do_not_disturb_each_other(model: NativeModel) -> None:
    first, second = model.session(model.encode(SOURCE)), model.session(model.encode(OTHER_SOURCE))
    one, other = random_tokens(70, seed=2), random_tokens(140, seed=3)
    found_one, found_other = [], []
    for step in range(0, 70, 10):
        found_one.append(first.extend(one[step : step + 10]).logits)
        found_other.append(second.extend(other[2 * step : 2 * step + 20]).logits)
    assert torch.equal(torch.cat(found_one), model.session(model.encode(SOURCE)).extend(one).logits)
    assert torch.equal(torch.cat(found_other), model.session(model.encode(OTHER_SOURCE)).extend(other).logits)


def test_every_reading_is_that_of_the_fast_session(model: NativeModel, folder: Path) -> None:
    fast, tokens = FastModel(load(folder, "float64"), VOCABULARY), random_tokens(9)
    ours = model.session(model.encode(SOURCE)).extend(tokens)
    theirs = fast.session(fast.encode(SOURCE)).extend(tokens)
    assert ours.argmax() == theirs.argmax()
    assert ours.max_prob() == pytest.approx(theirs.max_prob(), rel=1e-4)
    assert ours.logprob(tokens) == pytest.approx(theirs.logprob(tokens), rel=1e-4)
    assert ours.logprob(tokens[:3], 5) == pytest.approx(theirs.logprob(tokens[:3], 5), rel=1e-4)
    assert ours.logprob([]) == []
    assert_near(ours.probs(), theirs.probs())
    assert ours.top_two() == [pytest.approx(pair, abs=1e-5) for pair in theirs.top_two()]
    assert ours.last().argmax() == ours.argmax()[-1:]
    assert torch.equal(ours.last().logits, ours.logits[-1:])


def test_of_equal_scores_the_lowest_id_wins(library: Any, tmp_path: Path) -> None:
    whole = load(save_t5(tmp_path, vocab_size=700), "float32")
    with torch.no_grad():
        whole.lm_head.weight.zero_()
    model = NativeModel(library, whole, 700)
    row = model.session(model.encode(SOURCE)).extend([0])
    assert row.argmax() == [0]
    assert row.max_prob() == pytest.approx([1 / 700])


@pytest.mark.parametrize("at", [0, 191, 192, 500, 699])
def test_the_best_id_is_found_wherever_it_lies(library: Any, at: int, tmp_path: Path) -> None:
    """The vocabulary is gone through in chunks, and its end fills no whole vector."""
    whole = load(save_t5(tmp_path, vocab_size=700), "float32")
    with torch.no_grad():
        whole.decoder.final_layer_norm.weight.fill_(1)
        whole.lm_head.weight[at] = 2 * whole.lm_head.weight.abs().max()
    model = NativeModel(library, whole, 700)
    logits, ids, _ = model.score(torch.rand(3, 32))
    assert ids == [at] * 3 == logits.argmax(dim=-1).tolist()


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_scores_that_are_not_finite_are_told(library: Any, broken: float, tmp_path: Path) -> None:
    whole = load(save_t5(tmp_path, tied=False), "float32")
    with torch.no_grad():
        whole.lm_head.weight[7] = broken
    model = NativeModel(library, whole, VOCABULARY)
    row = model.session(model.encode(SOURCE)).extend([0])
    for reading in (row.argmax, row.max_prob, partial(row.logprob, [3])):
        with pytest.raises(RunError, match="row 0 has no finite best score"):
            reading()


@pytest.mark.parametrize("token", [-1, 10**6])
def test_an_id_without_an_embedding_is_refused(model: NativeModel, token: int) -> None:
    with pytest.raises(IndexError, match=str(token)):
        model.session(model.encode(SOURCE)).extend([0, token])


def test_memory_goes_back_with_the_last_reference(library: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[str] = []
    finalize = weakref.finalize

    def noted(handle: Any, free: Any, pointer: int) -> None:
        def call(address: int) -> None:
            freed.append(free.__name__)
            free(address)

        finalize(handle, call, pointer)

    monkeypatch.setattr(weakref, "finalize", noted)
    model = native_model(library, folder)
    session = model.session(model.encode(SOURCE))
    session.extend([0, 3])
    del session
    gc.collect()
    assert freed == ["native_free_cache"] * 2  # the target's and the source's
    del model
    gc.collect()
    assert freed[2:] == ["native_free_model"] * 2  # the encoder's and the decoder's
