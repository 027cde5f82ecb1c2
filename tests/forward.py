"""What sessions are held to: the library's own forward pass, which recomputes the whole prefix without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice
from bild_bench.models.library import load_model
from tests.checkpoints import VOCABULARY

SOURCE = torch.tensor([[5, 9, 30, 12, 7, 44, 1]])
OTHER_SOURCE = torch.tensor([[8, 1]])


def load(folder: Path, dtype: str) -> Any:
    """A loaded library model; the fast one takes it apart, so each side loads its own."""
    return load_model(find_checkpoint(ModelChoice(str(folder)), "--large", lambda line: None), "--large", "cpu", dtype)


def library_logits(model: Any, source: Tensor, tokens: Sequence[int]) -> Tensor:
    """Scores after every token, shape [n, VOCABULARY], from one pass without a cache."""
    with torch.inference_mode():
        logits: Tensor = model(input_ids=source, decoder_input_ids=torch.tensor([tokens]), use_cache=False).logits
    return logits[0, :, :VOCABULARY]


def random_tokens(count: int, seed: int = 1) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return [0, *torch.randint(0, VOCABULARY, (count - 1,), generator=generator).tolist()]


def assert_near(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(ours.double(), theirs.double(), atol=tolerance, rtol=0)
