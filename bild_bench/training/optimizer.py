"""Optimizers whose rate fits T5's tensors, which start at very different sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from bild_bench.training.recipe import Recipe

_BETAS = (0.9, 0.98)
# As in Adafactor (Shazeer and Stern 2018): a tensor that starts at zero must be able to leave it.
_SMALLEST_SCALE = 1e-3


def make_optimizer(model: nn.Module, recipe: Recipe) -> Optimizer:
    """Adafactor without its relative steps (Shazeer and Stern 2018), or AdamW.

    `scale_rate` multiplies the rate by each tensor's root mean square: with Adafactor what it is at every step, with
    AdamW what it is at the start.
    """
    trained = [(name, tensor) for name, tensor in model.named_parameters() if tensor.requires_grad]
    if recipe.optimizer == "adafactor":
        from transformers.optimization import Adafactor

        tensors = [tensor for _, tensor in trained]
        adafactor: Optimizer = Adafactor(
            tensors,
            lr=recipe.rate,
            scale_parameter=recipe.scale_rate,
            relative_step=False,
            weight_decay=recipe.weight_decay,
        )
        return adafactor
    return torch.optim.AdamW(
        list(_groups(trained, recipe)), lr=recipe.rate, betas=_BETAS, weight_decay=recipe.weight_decay
    )


def _groups(trained: Iterable[tuple[str, nn.Parameter]], recipe: Recipe) -> Iterable[dict[str, Any]]:
    if not recipe.scale_rate:
        yield {"params": [tensor for _, tensor in trained]}
        return
    for _, tensor in trained:
        scale = max(float(tensor.detach().square().mean().sqrt()), _SMALLEST_SCALE)
        yield {"params": [tensor], "lr": recipe.rate * scale, "weight_decay": _decay(recipe, scale)}


def _decay(recipe: Recipe, scale: float) -> float:
    # The library multiplies decay by the rate: without this a small tensor would hardly decay at all.
    return recipe.weight_decay / scale
