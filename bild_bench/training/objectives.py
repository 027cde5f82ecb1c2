"""What a model is trained for: the loss of a batch, from the last layer or from several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

from bild_bench.errors import DataError, UsageError
from bild_bench.training.batches import IGNORED
from bild_bench.training.recipe import Recipe

_T5_FAMILY = ("t5", "mt5")


def loss_weights(recipe: Recipe, layers: int) -> dict[int, float]:
    """Decoder layer, from 1 -> weight of its loss; the weights sum to 1.

    standard: the last layer. early-exit: layer k and the last alike (BiLD, section 5, k = 1). calm: every layer in
    proportion to its depth (Schuster et al. 2022, section 3.3).

    Raises:
        UsageError: an exit layer that is not below the last.
    """
    if recipe.objective == "early-exit":
        if recipe.exit_layer >= layers:
            fix = f"choose 1 to {layers - 1}" if layers > 1 else "train a decoder of 2 or more layers"
            raise UsageError(
                "--exit-layer", recipe.exit_layer, f"must be below the last of the decoder's {layers} layers", fix
            )
        return {recipe.exit_layer: 0.5, layers: 0.5}
    if recipe.objective == "calm":
        total = layers * (layers + 1) / 2
        return {layer: layer / total for layer in range(1, layers + 1)}
    return {layers: 1.0}


def check_layered(objective: str, model: Any, name: str) -> None:
    """Refuse what has no layers to leave.

    Raises:
        DataError: an objective of several layers on another family than T5, or on one layer.
    """
    kind = model.config.model_type
    if objective != "standard" and kind not in _T5_FAMILY:
        raise DataError(
            "--init",
            name,
            f"--objective {objective} needs a model of the T5 family, not {kind}",
            "use --objective standard, or a T5 or mT5 checkpoint",
        )
    if objective in ("calm", "calm-classifier") and model.config.num_decoder_layers < 2:
        fix = "give a model with 2 or more decoder layers"
        raise DataError("--init", name, f"--objective {objective} needs a layer below the last, and it has one", fix)


def layer_logits(model: Any, states: Tensor) -> Tensor:
    """Next-token logits [..., vocabulary] of the states [..., d_model] that a decoder layer leaves.

    As after the last layer: final norm, scaling where the model has it, shared head.
    """
    decoder = model.decoder
    states = decoder.dropout(decoder.final_layer_norm(states))
    if getattr(model.config, "scale_decoder_outputs", False):
        states = states * model.config.d_model**-0.5
    return model.lm_head(states)  # type: ignore[no-any-return]


def summed_loss(model: Any, outputs: Any, labels: Tensor, weights: dict[int, float]) -> Tensor:
    """Cross-entropy summed over the target tokens, in nats, layers weighted.

    Args:
        outputs: the model's, with decoder_hidden_states where a layer below the last has a weight.
        labels: [texts, target], IGNORED where a text has ended.
        weights: see `loss_weights`.
    """
    last = model.config.num_decoder_layers if len(weights) > 1 else next(iter(weights))
    loss = labels.new_zeros((), dtype=outputs.logits.dtype)
    for layer, weight in weights.items():
        logits = outputs.logits if layer == last else layer_logits(model, outputs.decoder_hidden_states[layer])
        entropy = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
        loss = loss + weight * entropy
    return loss


def loss_function(summed: Callable[[Any, Tensor], Tensor]) -> Callable[..., Tensor]:
    """The library trainer's hook: the mean over the target tokens of all batches that share a step."""

    def mean_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        tokens = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        return summed(outputs, labels) / tokens

    return mean_loss
