"""The loss of each objective and its gradient: against numbers worked out by hand, and against finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from bild_bench.errors import DataError, UsageError
from bild_bench.training import trainer
from bild_bench.training.batches import IGNORED, Batches
from bild_bench.training.classifier import ExitClassifier, summed_classifier_loss
from bild_bench.training.objectives import check_layered, loss_function, loss_weights, summed_loss
from bild_bench.training.processes import run_in_processes
from bild_bench.training.recipe import Recipe
from bild_bench.training.texts import Encoded
from tests.checkpoints import save_bart, save_mt5, save_t5
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


def one_step(folder: Path, out: Path, groups: list[list[int]], **recipe: Any) -> None:
    """A step of plain gradient descent at rate 1 by the trainer, whose weights are saved into out."""
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    model = load(folder, "float32").requires_grad_(True)
    model.decoder.config.output_hidden_states = True
    settings = Recipe(objective="early-exit", epochs=None, steps=1, clip=1e9, precision="float32", **recipe)
    summed = partial(summed_loss, model, weights=loss_weights(settings, model.config.num_decoder_layers))
    training = Batches(TEXTS, [np.array(group) for group in groups], pad=0, start=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "make_optimizer", lambda model, _: torch.optim.SGD(model.parameters(), lr=1.0))
        trainer.fit(model, summed, training, {"1": training}, settings, out)
    model.save_pretrained(out)


def weights_after(folder: Path) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in load(folder, "float32").named_parameters()}


def test_batches_of_one_step_sum_to_one_big_batch_in_one_process_and_in_two(tmp_path: Path) -> None:
    save_t5(tmp_path / "made", **SHAPE)
    one_step(tmp_path / "made", tmp_path / "big", [[0, 1, 2]])
    one_step(tmp_path / "made", tmp_path / "accumulated", [[0], [1, 2]], accumulate=2)
    run_in_processes(one_step_of_two, (tmp_path / "made", tmp_path / "shared"), 2)
    before, big = weights_after(tmp_path / "made"), weights_after(tmp_path / "big")
    steepest = max(float((big[name] - before[name]).abs().max()) for name in big)
    assert steepest > 0.1
    for other in ("accumulated", "shared"):
        for name, weight in weights_after(tmp_path / other).items():
            torch.testing.assert_close(weight, big[name], rtol=0, atol=2e-6 * steepest + 1e-6)


def one_step_of_two(folder: Path, out: Path) -> None:
    # The batches differ in tokens: a mean of two means would not be the mean over all.
    one_step(folder, out, [[0], [1, 2]], processes=2)
