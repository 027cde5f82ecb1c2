"""Loading a checkpoint as a pair of one, and damaging it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bild_bench.errors import DataError
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.pair import Pair, load_pair

Weights = dict[str, torch.Tensor]


def load(folder: Path, *, tokenizer: Path | None = None, prefix: str = "", **options: Any) -> Pair:
    """The checkpoint as the large model, alone."""
    choice = ModelChoice(str(folder), tokenizer=None if tokenizer is None else str(tokenizer))
    return load_pair(PairChoice("made", choice, None, prefix), ["large"], device="cpu", **options)


def problem_with(folder: Path, **options: Any) -> str:
    """The one line that a checkpoint which cannot be used ends in."""
    with pytest.raises(DataError) as caught:
        load(folder, **options)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("--large: ")
    return str(caught.value)


def edit(folder: Path, name: str, **fields: Any) -> None:
    """Change fields of a JSON file."""
    path = folder / name
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | fields))


def change_weights(folder: Path, change: Callable[[Weights], Any]) -> None:
    """Read the weights, change them, and write them back."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
