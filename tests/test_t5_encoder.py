"""The encoder in PyTorch against the library's modules."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bild_bench.models.t5_encoder import T5Encoder
from tests.checkpoints import save_t5
from tests.forward import assert_near, load
from tests.native_models import VARIANTS, encoder_states, random_source


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_output_is_the_librarys_at_every_length(variant: str, dtype: str, tolerance: float, tmp_path: Path) -> None:
    VARIANTS[variant](tmp_path)
    lengths, library = (1, 2, 17, 150, 33), load(tmp_path, dtype)
    expected = [encoder_states(library, random_source(length)) for length in lengths]
    ours = T5Encoder(library)
    with torch.inference_mode():
        for length, states in zip(lengths, expected, strict=True):
            assert_near(ours.states(torch.tensor(random_source(length))), states, tolerance * float(states.abs().max()))


def test_float16_clamps_what_would_overflow(tmp_path: Path) -> None:
    save_t5(tmp_path)
    library = load(tmp_path, "float16")
    library.encoder.block[0].layer[1].DenseReluDense.wo.weight.mul_(1e6)
    with torch.inference_mode():
        assert T5Encoder(library).states(torch.tensor(random_source(9))).isfinite().all()
