"""The gradient of each objective against finite differences of a loss computed in another way."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bild_bench.training.batches import IGNORED
from bild_bench.training.classifier import ExitClassifier, summed_classifier_loss
from bild_bench.training.objectives import loss_function
from bild_bench.training.recipe import Recipe
from bild_bench.training.texts import Encoded
from tests.made_losses import TEXTS, batch_of, cut, loss_of, model_of


def expected_loss(shorts: dict[int, Any], weights: dict[int, float], text: Encoded) -> float:
    """Minus the logarithm of the softmax, text by text, from models that end after the layer."""
    total = 0.0
    for layer, weight in weights.items():
        with torch.no_grad():
            written = torch.tensor([[0, *text.target[:-1]]])
            logits = shorts[layer](
                input_ids=torch.tensor([text.source]), decoder_input_ids=written, use_cache=False
            ).logits[0]
        scores = np.exp(logits.numpy())
        for position, token in enumerate(text.target):
            total -= weight * math.log(scores[position, token] / scores[position].sum())
    return total / len(text.target)


CASES = [
    ("t5", Recipe(), {3: 1.0}),
    ("mt5", Recipe(objective="early-exit", exit_layer=2), {2: 0.5, 3: 0.5}),
    ("t5", Recipe(objective="early-exit"), {1: 0.5, 3: 0.5}),
    ("v1.1", Recipe(objective="calm"), {1: 1 / 6, 2: 2 / 6, 3: 3 / 6}),
]


@pytest.mark.parametrize(("family", "recipe", "weights"), CASES)
def test_the_gradient_of_every_tensor_is_the_slope_of_the_loss(
    tmp_path: Path, family: str, recipe: Recipe, weights: dict[int, float]
) -> None:
    model = model_of(tmp_path, family)
    text = TEXTS[0]
    shorts = {layer: cut(model, layer) for layer in weights}
    loss = loss_of(model, recipe, text)
    assert loss.item() == pytest.approx(expected_loss(shorts, weights, text), rel=1e-10)
    loss.backward()
    step, moved = 1e-5, 0
    for name, weight in model.named_parameters():
        flat, gradient = weight.detach().flatten(), weight.grad.flatten()
        assert flat.data_ptr() == weight.data_ptr()
        # Where the slope is steepest, and some other place.
        for entry in {int(gradient.abs().argmax()), len(name) % len(flat)}:
            was, found = flat[entry].item(), []
            for sign in (1, -1):
                flat[entry] = was + sign * step
                found.append(expected_loss(shorts, weights, text))
            flat[entry] = was
            assert gradient[entry].item() == pytest.approx((found[0] - found[1]) / (2 * step), rel=1e-5, abs=1e-8), name
        moved += bool(gradient.abs().max() > 1e-6)
    # No tensor is left out: all of them take part in the loss.
    assert moved == len(list(model.parameters()))


def gradients(model: Any) -> dict[str, Tensor]:
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    return found


@pytest.mark.parametrize("objective", ["standard", "early-exit", "calm"])
def test_padding_counts_for_nothing_and_every_token_counts_alike(tmp_path: Path, objective: Any) -> None:
    model = model_of(tmp_path, "t5")
    recipe = Recipe(objective=objective)
    together = loss_of(model, recipe, *TEXTS)
    together.backward()
    of_batch = gradients(model)
    tokens = sum(len(text.target) for text in TEXTS)
    alone = [loss_of(model, recipe, text, tokens=tokens) for text in TEXTS]
    for loss in alone:
        loss.backward()
    assert together.item() == pytest.approx(sum(loss.item() for loss in alone), rel=1e-12)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, of_batch[name], rtol=1e-9, atol=1e-12)


def test_the_classifier_learns_where_a_layer_agrees_with_the_last_and_the_model_nothing(tmp_path: Path) -> None:
    model = model_of(tmp_path, "t5")
    shorts = {layer: cut(model, layer) for layer in (1, 2, 3)}
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    states: dict[int, Tensor] = {}
    for layer in (1, 2):
        model.decoder.block[layer - 1].register_forward_hook(
            lambda _, __, output, layer=layer: states.update({layer: output[0]})
        )
    classifier = ExitClassifier(model)
    assert set(dict(classifier.named_parameters())) == set(classifier.state_dict()) == {"linear.weight", "linear.bias"}
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        classifier.linear.weight.copy_(torch.randn(1, 6, generator=generator))
        classifier.linear.bias.fill_(0.25)
    inputs = batch_of(*TEXTS)
    labels = inputs.pop("labels")
    loss = loss_function(summed_classifier_loss)(classifier(**inputs), labels)
    loss.backward()

    with torch.no_grad():
        picks = {layer: short(**inputs, use_cache=False).logits.argmax(-1) for layer, short in shorts.items()}
    weight, expected = classifier.linear.weight.detach().numpy()[0], 0.0
    of_weight, of_bias, seen = np.zeros(6), 0.0, set()
    counted = (labels != IGNORED).nonzero().tolist()
    for layer in (1, 2):
        for text, position in counted:
            state = states[layer][text, position].detach().numpy()
            target = float(picks[layer][text, position] == picks[3][text, position])
            chance = 1 / (1 + math.exp(-(state @ weight + 0.25)))
            expected -= target * math.log(chance) + (1 - target) * math.log(1 - chance)
            of_weight, of_bias = of_weight + (chance - target) * state, of_bias + chance - target
            seen.add(target)
    count = 2 * len(counted)
    assert seen == {0.0, 1.0}
    assert loss.item() == pytest.approx(expected / count, rel=1e-5)
    np.testing.assert_allclose(classifier.linear.weight.grad.numpy()[0], of_weight / count, rtol=1e-4, atol=1e-6)
    assert classifier.linear.bias.grad.item() == pytest.approx(of_bias / count, rel=1e-4)
    for name, tensor in model.named_parameters():
        assert tensor.grad is None
        assert torch.equal(tensor, before[name])
