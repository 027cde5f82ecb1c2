"""CALM's learned exit classifier: a file beside a checkpoint's weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from bild_bench.errors import DataError
from bild_bench.models.checkpoint import Checkpoint
from bild_bench.models.library import reason


def load_exit_classifier(checkpoint: Checkpoint, device: Any, width: int) -> tuple[Tensor, Tensor] | None:
    """CALM's learned exit classifier: weight [width] and bias [], float32; None where the checkpoint has none.

    Raises:
        DataError: the file is damaged, or holds something else, or numbers that are not finite.
    """
    path = checkpoint.path / "exit_classifier.safetensors"
    if not path.is_file():
        return None
    try:
        tensors = load_file(path)
        weight, bias = tensors["weight"], tensors["bias"]
    except (SafetensorError, KeyError) as error:
        raise _no_classifier(path, f"cannot be loaded ({reason(error)})") from error
    for name, tensor, shape in (("weight", weight, [width]), ("bias", bias, [])):
        if list(tensor.shape) != shape:
            raise _no_classifier(path, f"{name} has shape {list(tensor.shape)}, the model wants {shape}")
        if not tensor.is_floating_point():
            raise _no_classifier(path, f"{name} is stored as {str(tensor.dtype).removeprefix('torch.')}")
        if not torch.isfinite(tensor).all():
            raise _no_classifier(path, f"{name} holds NaN or infinity")
    return weight.float().to(device), bias.float().to(device)


def _no_classifier(path: Path, problem: str) -> DataError:
    return DataError("exit classifier", str(path), problem, "train it anew, or remove the file")
