"""Layered sessions hold the same scores as the fast one, whatever was fed and cut before, layer by layer or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.errors import DataError
from bild_bench.models.fast import FastModel
from bild_bench.models.layered import LayeredSession, early_exit_sessions
from tests.checkpoints import VOCABULARY
from tests.method_pairs import cut_out, load_alone, save_deep

SOURCE = torch.tensor([[5, 9, 30, 12, 7, 44, 1]])
DEPTH = 3
Models = tuple[FastModel, dict[int, FastModel]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """The whole model, and its first layers as models of their own by their number."""
    folder = tmp_path_factory.mktemp("whole")
    save_deep(folder, DEPTH)
    parts = {k: fast(cut_out(folder, k, tmp_path_factory.mktemp(f"first{k}"))) for k in (1, 2)}
    return fast(folder), parts


def fast(folder: Path) -> FastModel:
    model: Any = load_alone(folder).models["large"].model
    assert isinstance(model, FastModel)
    return model


def text(count: int, seed: int) -> list[int]:
    return torch.randint(0, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def assert_same(rows: Any, expected: Any) -> None:
    torch.testing.assert_close(rows.logits, expected, atol=1e-9, rtol=0)


def test_all_layers_one_by_one_are_the_fast_session(models: Models) -> None:
    whole, _ = models
    source, tokens = whole.encode(SOURCE), text(70, seed=1)  # more than one block of the cache
    expected = whole.session(source).extend(tokens).logits
    session = LayeredSession(whole, source)
    for position, token in enumerate(tokens):
        assert session.length == position
        session.embed([token])
        for _ in range(session.depth):
            session.run_layer()
        assert_same(session.rows(), expected[position : position + 1])
        session.skip_rest()


def test_a_block_of_positions_goes_through_the_layers_like_the_same_one_by_one(models: Models) -> None:
    whole, _ = models
    source, tokens = whole.encode(SOURCE), text(9, seed=2)
    session = LayeredSession(whole, source)
    for block in (tokens[:4], tokens[4:]):
        session.embed(block)
        for _ in range(DEPTH):
            session.run_layer()
        rows = session.rows()
        session.skip_rest()
    assert_same(rows, whole.session(source).extend(tokens).logits[4:])


def test_below_the_last_layer_the_rows_are_those_of_the_layers_below_alone(models: Models) -> None:
    whole, parts = models
    source = whole.encode(SOURCE)
    session = LayeredSession(whole, source)
    session.embed([0])
    for k in (1, 2):
        session.run_layer()
        assert_same(session.rows(), parts[k].session(parts[k].encode(SOURCE)).extend([0]).logits)


# One step: who acts, where the text is cut first (None: nowhere), how many tokens follow.
STEP = st.tuples(st.sampled_from(["lower", "whole"]), st.none() | st.integers(0, 90), st.integers(1, 40))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2]), st.lists(STEP, min_size=1, max_size=8), st.integers(0, 99))
def test_after_any_history_both_sessions_are_fresh_ones(
    models: Models, exit_layer: int, history: list[tuple[str, int | None, int]], seed: int
) -> None:
    """The two read one text: either may be ahead, and a cut, through whichever session, is followed by other tokens."""
    whole, parts = models
    source = whole.encode(SOURCE)
    lower_session, whole_session = early_exit_sessions(whole, source, exit_layer)
    part_source = parts[exit_layer].encode(SOURCE)
    tokens = text(400, seed)
    for step, (who, cut, count) in enumerate(history):
        session = lower_session if who == "lower" else whole_session
        if cut is not None:
            session.truncate(cut)
            cut = min(cut, lower_session.length)
            tokens = tokens[:cut] + text(400 - cut, seed + 100 + step)
        assert whole_session.length <= lower_session.length
        start = session.length
        fed = tokens[: start + count]
        rows = session.extend(fed[start:])
        assert (session.length, len(rows)) == (start + count, count)
        model, read = (parts[exit_layer], part_source) if who == "lower" else (whole, source)
        assert_same(rows, model.session(read).extend(fed).logits[start:])


def test_a_cut_through_either_session_holds_for_both(models: Models) -> None:
    whole, _ = models
    for cut_by in (0, 1):
        pair = early_exit_sessions(whole, whole.encode(SOURCE), 1)
        pair[1].extend([0, 4, 5, 6])
        pair[cut_by].truncate(2)
        assert (pair[0].length, pair[1].length) == (2, 2)
        pair[cut_by].truncate(7)
        assert (pair[0].length, pair[1].length) == (2, 2)


@pytest.mark.parametrize("exit_layer", [DEPTH, DEPTH + 4])
def test_nothing_is_above_the_last_layer(models: Models, exit_layer: int) -> None:
    whole, _ = models
    with pytest.raises(DataError, match=f"--exit-layer: {exit_layer}.*{DEPTH} layers"):
        early_exit_sessions(whole, whole.encode(SOURCE), exit_layer)
