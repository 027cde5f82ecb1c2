"""Checkpoints that the native session and its encoder are held to, and how near."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from bild_bench.models.native.build import native_library
from tests.checkpoints import VOCABULARY, save_mt5, save_t5

VARIANTS: dict[str, Callable[[Path], Path]] = {
    "T5 1.0": save_t5,
    "T5 1.1": partial(save_t5, gated=True, tied=False),
    "mT5": save_mt5,
    "tied and gated": partial(save_t5, gated=True),
    "one head": partial(save_t5, num_heads=1, d_kv=32),
    "nothing is a multiple of a vector": partial(save_t5, gated=True, num_heads=3, d_kv=10, d_model=37, d_ff=53),
    "wider than a panel group": partial(save_t5, gated=True, num_heads=5, d_kv=24, d_model=176, d_ff=600),
    "decoder deeper than encoder": partial(save_mt5, num_layers=1, num_decoder_layers=3),
    "wide buckets": partial(save_t5, relative_attention_num_buckets=32, relative_attention_max_distance=128),
}


def compiled() -> Any:
    """The native library; the test is skipped where there is no compiler."""
    found = native_library()
    if found.library is None:
        pytest.skip(f"no native decoder here: {found.problem}")
    return found.library


def assert_near(ours: Tensor, theirs: Tensor, rounding: float = 0.0) -> None:
    """To 1e-4 of the largest score, or some times the library's own rounding where that is more."""
    allowed = max(1e-4 * float(theirs.abs().max()), 4 * rounding)
    torch.testing.assert_close(ours.double(), theirs.double(), atol=allowed, rtol=0)


def in_blocks(session: Any, tokens: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Feed tokens in blocks of these sizes; all rows' scores."""
    rows, start = [], session.length
    for size in sizes:
        rows.append(session.extend(tokens[start : start + size]).logits)
        start += size
    return torch.cat(rows)


def random_source(length: int, seed: int = 3) -> list[int]:
    return torch.randint(0, VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def encoder_states(model: Any, ids: list[int]) -> Tensor:
    """The library's encoder's output [length, d_model]."""
    source = torch.tensor([ids])
    with torch.inference_mode():
        found: Tensor = model.encoder(input_ids=source, attention_mask=torch.ones_like(source)).last_hidden_state
    return found[0]
