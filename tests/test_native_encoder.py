"""The native encoder against the library's modules, in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.models.native.encoder import NativeEncoder
from tests.checkpoints import save_t5
from tests.forward import load
from tests.native_models import VARIANTS, assert_near, compiled, encoder_states, random_source


@pytest.fixture(scope="module")
def library() -> Any:
    return compiled()


@pytest.fixture(scope="module")
def encoder(library: Any, tmp_path_factory: pytest.TempPathFactory) -> NativeEncoder:
    folder = save_t5(tmp_path_factory.mktemp("t5"), gated=True, num_heads=3, d_kv=10, num_layers=3)
    return NativeEncoder(library, load(folder, "float32"))


# 1, 2, 4, 5: groups of rows and less; 17 and 33: a vector of positions and one more; 150: beyond the last bucket and
# the first block of the bias.
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_output_is_the_librarys_at_every_length(
    library: Any,
    variant: str,
    threads: int,
    tmp_path: Path,
) -> None:
    VARIANTS[variant](tmp_path)
    exact, rounded = load(tmp_path, "float64"), load(tmp_path, "float32")
    expected = {length: encoder_states(exact, random_source(length)) for length in (1, 2, 4, 5, 17, 33, 150)}
    rounding = {length: encoder_states(rounded, random_source(length)) - states for length, states in expected.items()}
    torch.set_num_threads(threads)
    ours = NativeEncoder(library, rounded)
    for length, states in expected.items():
        assert_near(ours.states(random_source(length)), states, float(rounding[length].abs().max()))


def test_threads_change_nothing(encoder: NativeEncoder) -> None:
    found = []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        found.append(encoder.states(random_source(37)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 5)), min_size=1, max_size=6))
@settings(max_examples=40)
def test_a_text_leaves_nothing_behind_for_the_next(encoder: NativeEncoder, texts: list[tuple[int, int]]) -> None:
    alone = encoder.states(random_source(20))
    for length, seed in texts:
        encoder.states(random_source(length, seed))
    assert torch.equal(encoder.states(random_source(20)), alone)


def test_position_matters(encoder: NativeEncoder) -> None:
    ids = random_source(12)
    assert not torch.allclose(encoder.states(ids), encoder.states(ids[::-1]).flip(0), atol=1e-3)


def test_an_unknown_id_is_refused(encoder: NativeEncoder) -> None:
    for wrong in (-1, 10_000):
        with pytest.raises(IndexError, match="outside the embedding"):
            encoder.states([3, wrong, 1])
