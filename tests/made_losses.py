"""Models small enough to check the gradient of every tensor, and their losses as the trainer computes them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from bild_bench.training.batches import Batches
from bild_bench.training.objectives import loss_function, loss_weights, summed_loss
from bild_bench.training.recipe import Recipe
from bild_bench.training.texts import Encoded
from tests.checkpoints import save_mt5, save_t5
from tests.forward import load

# Small enough that every number matters; three decoder layers, so that 1/6, 2/6 and 3/6 differ from 1/3 each.
_SIZES = {"d_model": 6, "d_kv": 3, "d_ff": 5, "num_heads": 2, "num_layers": 1, "num_decoder_layers": 3}
SHAPE = {**_SIZES, "dropout_rate": 0.0}
FAMILIES: dict[str, Callable[[Path], Path]] = {
    "t5": lambda folder: save_t5(folder, **SHAPE),
    "v1.1": lambda folder: save_t5(folder, gated=True, tied=False, **SHAPE),
    "mt5": lambda folder: save_mt5(folder, **SHAPE),
}
TEXTS = (Encoded((5, 9, 30, 1), (12, 7, 44, 1)), Encoded((8, 1), (3, 1)), Encoded((6, 4, 1), (20, 21, 22, 23, 1)))


def model_of(folder: Path, family: str) -> Any:
    """In float64, with gradients."""
    return load(FAMILIES[family](folder), "float64").requires_grad_(True)


def batch_of(*texts: Encoded) -> dict[str, Tensor]:
    return Batches(texts, [np.arange(len(texts))], pad=0, start=0)[0]


def loss_of(model: Any, recipe: Recipe, *texts: Encoded, tokens: int | None = None) -> Tensor:
    """As the trainer computes it, from one padded batch."""
    weights = loss_weights(recipe, model.config.num_decoder_layers)
    inputs = batch_of(*texts)
    labels = inputs.pop("labels")
    outputs = model(**inputs, use_cache=False, output_hidden_states=True)
    return loss_function(partial(summed_loss, model, weights=weights))(outputs, labels, num_items_in_batch=tokens)


def cut(model: Any, layers: int) -> Any:
    """The model with only its first decoder layers, as the library runs it; weights are shared with the whole."""
    memo = {id(weight): weight for weight in model.parameters()}
    short = deepcopy(model, memo)
    short.decoder.block = short.decoder.block[:layers]
    return short
