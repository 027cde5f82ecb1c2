"""The native decoder layer by layer: the same numbers as all at once, and as the fast session's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from bild_bench.models.fast import FastModel
from bild_bench.models.layered import LayeredSession, early_exit_sessions
from bild_bench.models.native.session import NativeModel
from tests.checkpoints import VOCABULARY, save_t5
from tests.forward import SOURCE, load, random_tokens
from tests.native_models import compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, num_heads=3, d_kv=10, num_decoder_layers=3)


@pytest.fixture(scope="module")
def model(folder: Path) -> NativeModel:
    return NativeModel(compiled(), load(folder, "float32"), VOCABULARY)


def assert_near(ours: Tensor, theirs: Tensor) -> None:
    """To 1e-4 of the largest score."""
    torch.testing.assert_close(ours, theirs, atol=1e-4 * float(theirs.abs().max()), rtol=0)


def test_layers_one_by_one_are_the_whole(model: NativeModel) -> None:
    source, tokens = model.encode(SOURCE), random_tokens(70)
    expected = model.session(source).extend(tokens).logits
    session = LayeredSession(model, source)
    for position, token in enumerate(tokens):
        session.embed([token])
        for _ in range(session.depth):
            session.run_layer()
        assert torch.equal(session.rows().logits, expected[position : position + 1])  # type: ignore[attr-defined]
        session.skip_rest()


def test_skipped_layers_get_the_keys_and_values_that_the_fast_session_gives_them(
    model: NativeModel, folder: Path
) -> None:
    fast = FastModel(load(folder, "float32"), VOCABULARY)
    found = []
    for one in (model, fast):
        session, scores = LayeredSession(one, one.encode(SOURCE)), []
        for step, token in enumerate(random_tokens(12)):
            session.embed([token])
            for _ in range(1 + step % session.depth):
                session.run_layer()
            scores.append(session.rows().logits)  # type: ignore[attr-defined]
            session.skip_rest()
        found.append((torch.cat(scores), session.similarity()))
    assert_near(found[0][0], found[1][0])
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-4)


def test_an_early_exit_pair_is_the_fast_ones(model: NativeModel, folder: Path) -> None:
    fast, tokens, found = FastModel(load(folder, "float32"), VOCABULARY), random_tokens(30), []
    for one in (model, fast):
        lower, whole = early_exit_sessions(one, one.encode(SOURCE), 1)
        parts = [lower.extend(tokens[:5]), whole.extend(tokens[:8]), lower.extend(tokens[8:20])]
        lower.truncate(15)
        parts.append(whole.extend(tokens[8:18]))
        found.append(torch.cat([rows.logits for rows in parts]))  # type: ignore[attr-defined]
    assert_near(*found)
