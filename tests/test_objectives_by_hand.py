"""The loss of each objective, and its gradient at the head, against numbers worked out by hand; and its rules."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from bild_bench.errors import DataError, UsageError
from bild_bench.training.objectives import check_layered, loss_weights
from bild_bench.training.recipe import Recipe
from bild_bench.training.texts import Encoded
from tests.checkpoints import save_bart
from tests.forward import load
from tests.made_losses import loss_of


def by_hand(tied: bool, layers: int) -> Any:
    """A T5 whose states can be worked out on paper: every sublayer adds nothing, but for the last feed-forward.

    The start token's embedding is (3, 4). The second layer's feed-forward turns it into (4, -3).
    """
    config = transformers.T5Config(
        vocab_size=3,
        d_model=2,
        d_kv=1,
        d_ff=1,
        num_heads=1,
        num_layers=1,
        num_decoder_layers=layers,
        layer_norm_epsilon=0.0,
        dropout_rate=0.0,
        scale_decoder_outputs=tied,
        decoder_start_token_id=0,
    )
    model = transformers.T5ForConditionalGeneration(config).double()
    embedding = torch.tensor([[3.0, 4.0], [4.0, -3.0], [0.0, 0.0]], dtype=torch.float64)
    with torch.no_grad():
        if not tied:
            model.lm_head.weight = torch.nn.Parameter(embedding.clone())
        model.shared.weight.copy_(embedding)
        for name, weight in model.named_parameters():
            if name.endswith((".o.weight", ".wo.weight")):
                weight.zero_()
        if layers == 2:
            feed = model.decoder.block[1].layer[2].DenseReluDense
            feed.wi.weight.copy_(torch.tensor([[1.0, 0.0]]))
            # The norm of (3, 4) is (3, 4) / sqrt(12.5); its first number is 0.6 sqrt(2).
            feed.wo.weight.copy_(torch.tensor([[1.0], [-7.0]], dtype=torch.float64) / (0.6 * math.sqrt(2)))
    return model


ONE = Encoded((0,), (1,))
# Scores (5, 0, 0): the token that is wanted has the second. Then (0, 5, 0).
FIRST, SECOND = math.log(math.exp(5) + 2), math.log(math.exp(5) + 2) - 5


@pytest.mark.parametrize(
    ("recipe", "layers", "expected"),
    [
        (Recipe(), 1, 5.013386),
        (Recipe(), 2, 0.013386),
        (Recipe(objective="early-exit"), 2, 2.513386),
        (Recipe(objective="calm"), 2, (5.013386 + 2 * 0.013386) / 3),
    ],
)
def test_one_token_worked_out_on_paper(recipe: Recipe, layers: int, expected: float) -> None:
    # (3, 4) normed is (0.6, 0.8) sqrt(2), scaled by 1 / sqrt(2) it is (0.6, 0.8), and (3, 4) . (0.6, 0.8) = 5.
    loss = loss_of(by_hand(True, layers), recipe, ONE)
    # The library's norm computes the variance in float32.
    assert loss.item() == pytest.approx(expected, abs=2e-6)
    assert pytest.approx(expected, abs=1e-6) in (FIRST, SECOND, (FIRST + SECOND) / 2, (FIRST + 2 * SECOND) / 3)


@pytest.mark.parametrize(
    ("recipe", "states"),
    [
        (Recipe(), {2: 1.0}),
        (Recipe(objective="early-exit"), {1: 1 / 2, 2: 1 / 2}),
        (Recipe(objective="calm"), {1: 1 / 3, 2: 2 / 3}),
    ],
)
def test_the_head_gets_the_softmax_minus_the_target_times_the_normed_state_of_each_layer(
    recipe: Recipe, states: dict[int, float]
) -> None:
    model = by_hand(False, 2)
    loss_of(model, recipe, ONE).backward()
    # Untied: not scaled, so scores and states are sqrt(2) times as large.
    normed = {1: math.sqrt(2) * np.array([0.6, 0.8]), 2: math.sqrt(2) * np.array([0.8, -0.6])}
    scores = {1: np.array([5 * math.sqrt(2), 0, 0]), 2: np.array([0, 5 * math.sqrt(2), 0])}
    expected = np.zeros((3, 2))
    for layer, weight in states.items():
        softmax = np.exp(scores[layer]) / np.exp(scores[layer]).sum()
        expected += weight * np.outer(softmax - np.array([0, 1, 0]), normed[layer])
    np.testing.assert_allclose(model.lm_head.weight.grad.numpy(), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("objective", "layers", "weights"),
    [
        ("standard", 8, {8: 1.0}),
        ("early-exit", 8, {1: 0.5, 8: 0.5}),
        ("calm", 1, {1: 1.0}),
        ("calm", 2, {1: 1 / 3, 2: 2 / 3}),
        ("calm", 4, {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}),
    ],
)
def test_layers_are_weighted_as_the_papers_say(objective: Any, layers: int, weights: dict[int, float]) -> None:
    assert loss_weights(Recipe(objective=objective), layers) == pytest.approx(weights)


@pytest.mark.parametrize(("exit_layer", "layers"), [(2, 2), (3, 2), (1, 1)])
def test_an_exit_at_or_above_the_last_layer_is_refused(exit_layer: int, layers: int) -> None:
    with pytest.raises(UsageError, match=rf"--exit-layer: {exit_layer}: must be below the last of .* {layers} layers"):
        loss_weights(Recipe(objective="early-exit", exit_layer=exit_layer), layers)


@pytest.mark.parametrize("objective", ["early-exit", "calm", "calm-classifier"])
def test_objectives_of_several_layers_want_a_t5(tmp_path: Path, objective: str) -> None:
    bart = load(save_bart(tmp_path), "float32")
    with pytest.raises(DataError, match=rf"--init: 'made': --objective {objective} needs .* T5 family, not bart"):
        check_layered(objective, bart, "made")
    check_layered("standard", bart, "made")


@pytest.mark.parametrize("objective", ["calm", "calm-classifier"])
def test_one_decoder_layer_has_none_below_it(objective: str) -> None:
    config = transformers.T5Config(vocab_size=8, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_decoder_layers=1)
    model = transformers.T5ForConditionalGeneration(config)
    with pytest.raises(DataError, match="needs a layer below the last"):
        check_layered(objective, model, "made")
