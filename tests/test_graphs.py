"""The graphs session's step of fixed shape against the library's own forward pass, eagerly on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.models.graphs.session import GraphModel
from bild_bench.models.graphs.slot import in_blocks, padded
from bild_bench.models.layered import LayeredSession
from bild_bench.models.reference import ReferenceModel
from tests.checkpoints import VOCABULARY, save_t5
from tests.forward import OTHER_SOURCE, SOURCE, assert_near, library_logits, load, random_tokens
from tests.graph_models import VARIANTS, graph_model, in_steps, source_of

TOLERANCE = {"float32": 1e-3, "float64": 1e-9}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, tied=False, num_heads=3, num_decoder_layers=3)


@pytest.fixture(scope="module")
def model(folder: Path) -> GraphModel:
    return graph_model(folder)


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
