"""One step of training from several batches, in one process or in two, against one big batch."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from bild_bench.training import trainer
from bild_bench.training.batches import Batches
from bild_bench.training.objectives import loss_weights, summed_loss
from bild_bench.training.processes import run_in_processes
from bild_bench.training.recipe import Recipe
from tests.checkpoints import save_t5
from tests.forward import load
from tests.made_losses import SHAPE, TEXTS


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
