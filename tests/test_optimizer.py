"""Rates that fit each tensor, and the library's own optimizer where it has one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers.optimization import Adafactor

from bild_bench.training.optimizer import make_optimizer
from bild_bench.training.recipe import Recipe


class Three(nn.Module):
    """A large tensor, a small one and one at zero; and one that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.large = nn.Parameter(torch.tensor([[3.0, -4.0], [0.0, 5.0]]))  # root mean square sqrt(12.5)
        self.small = nn.Parameter(torch.tensor([0.01, -0.01]))
        self.zero = nn.Parameter(torch.zeros(3))
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)

    def tensors(self) -> list[Tensor]:
        return [self.large, self.small, self.zero]


def stepped(optimizer: torch.optim.Optimizer, model: Three, steps: int = 1) -> list[Tensor]:
    """How far each tensor went under a gradient of all ones."""
    before = [tensor.detach().clone() for tensor in model.tensors()]
    for _ in range(steps):
        for tensor in model.tensors():
            tensor.grad = torch.ones_like(tensor)
        optimizer.step()
    return [(tensor - was).detach() for tensor, was in zip(model.tensors(), before, strict=True)]


def test_adamw_steps_in_proportion_to_each_tensors_initial_size() -> None:
    model = Three()
    optimizer = make_optimizer(model, Recipe(optimizer="adamw", rate=0.1, scale_rate=True))
    moved = stepped(optimizer, model)
    # AdamW's first step is the rate, whatever the gradient's size.
    for step, expected in zip(moved, (0.1 * 12.5**0.5, 0.1 * 0.01, 0.1 * 0.001), strict=True):
        torch.testing.assert_close(step, torch.full_like(step, -expected), rtol=1e-4, atol=1e-7)
    assert torch.equal(model.frozen, torch.ones(2))


def test_adamw_without_scaling_steps_alike_everywhere() -> None:
    model = Three()
    optimizer = make_optimizer(model, Recipe(optimizer="adamw", rate=0.1))
    for step in stepped(optimizer, model):
        torch.testing.assert_close(step, torch.full_like(step, -0.1), rtol=1e-4, atol=1e-7)
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.98)


def test_weight_decay_shrinks_every_tensor_by_the_same_share() -> None:
    model = Three()
    optimizer = make_optimizer(model, Recipe(optimizer="adamw", rate=0.1, scale_rate=True, weight_decay=0.5))
    before = model.large.detach().clone(), model.small.detach().clone()
    for tensor in model.tensors():
        tensor.grad = torch.zeros_like(tensor)
    optimizer.step()
    # Rate times decay, 0.05, as it would be without scaled rates.
    torch.testing.assert_close(model.large.detach(), 0.95 * before[0])
    torch.testing.assert_close(model.small.detach(), 0.95 * before[1])


@pytest.mark.parametrize("scale", [True, False])
def test_adafactor_is_the_librarys_without_relative_steps(scale: bool) -> None:
    ours, theirs = Three(), Three()
    made = make_optimizer(ours, Recipe(optimizer="adafactor", rate=0.02, scale_rate=scale, weight_decay=0.1))
    library = Adafactor(
        theirs.tensors(), lr=0.02, scale_parameter=scale, relative_step=False, warmup_init=False, weight_decay=0.1
    )
    for mine, wanted in zip(stepped(made, ours, 3), stepped(library, theirs, 3), strict=True):
        assert torch.equal(mine, wanted)
        assert mine.abs().max() > 0
    settings = {name: value for name, value in made.param_groups[0].items() if name != "params"}
    assert settings == {name: value for name, value in library.param_groups[0].items() if name != "params"}


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(optimizer="adafactor", rate=0.1, scale_rate=True),
        Recipe(optimizer="adafactor", rate=0.1),
        Recipe(optimizer="adamw", rate=0.1, scale_rate=True),
    ],
)
def test_a_tensor_at_zero_can_leave_it(recipe: Recipe) -> None:
    model = Three()
    stepped(make_optimizer(model, recipe), model)
    assert (model.zero < 0).all()


def test_every_trained_tensor_is_in_one_group_and_a_schedule_keeps_their_proportions() -> None:
    model = Three()
    optimizer = make_optimizer(model, Recipe(optimizer="adamw", rate=0.1, scale_rate=True))
    held = [tensor for group in optimizer.param_groups for tensor in group["params"]]
    assert {id(tensor) for tensor in held} == {id(tensor) for tensor in model.tensors()}
    assert len(held) == 3
    scheduler: Any = transformers.get_scheduler("linear", optimizer, num_warmup_steps=0, num_training_steps=4)
    rates = [group["lr"] for group in optimizer.param_groups]
    optimizer.step()
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.75 * rate for rate in rates])
