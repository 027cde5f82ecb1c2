"""The library's trainer, set up from a recipe: the loop, checkpoints, resuming and sharing of batches are its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from bild_bench.errors import RunError
from bild_bench.training.batches import IGNORED, Batches
from bild_bench.training.callbacks import CHECKPOINTS, MarkWhole, Patience, ShowProgress, TimeLimit, last_checkpoint
from bild_bench.training.objectives import loss_function
from bild_bench.training.optimizer import make_optimizer
from bild_bench.training.recipe import Recipe

_KEPT = 2


class Trainer(transformers.Trainer):
    """The library's, with a validation loss that is a mean over target tokens and not over batches."""

    control: Any

    def __init__(
        self, summed: Callable[[Any, Tensor], Tensor], validation: Mapping[str, Batches], **given: Any
    ) -> None:
        super().__init__(compute_loss_func=loss_function(summed), eval_dataset=validation, **given)
        self._summed = summed
        self.remove_callback(transformers.PrinterCallback)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Loss in nats a target token: `eval_loss` over all parts, and `eval_loss_NAME` of each of several."""
        sums = {name: self._sum(batches) for name, batches in self.eval_dataset.items()}
        metrics = {f"eval_loss_{name}": float(loss / tokens) for name, (loss, tokens) in sums.items() if len(sums) > 1}
        loss, tokens = torch.stack(tuple(sums.values())).sum(0)
        metrics["eval_loss"] = float(loss / tokens)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def log(self, logs: dict[str, float], *given: Any) -> None:
        """Keep what is logged.

        Raises:
            RunError: a loss that is no number any more; all processes meet it, for they share the losses.
        """
        super().log(logs, *given)
        for name in ("loss", "eval_loss"):
            if not math.isfinite(logs.get(name, 0.0)):
                step = f"step {self.state.global_step}"
                raise RunError("training", step, f"the {name} is {logs[name]}", "try a lower --rate, in another --out")

    @torch.no_grad()
    def _sum(self, batches: Batches) -> Tensor:
        """Summed loss and target tokens [2], over all processes."""
        model = self.model.eval()
        total = torch.zeros(2, dtype=torch.float64, device=self.args.device)
        for index in range(self.args.process_index, len(batches), self.args.world_size):
            inputs = {name: tensor.to(self.args.device) for name, tensor in batches[index].items()}
            labels = inputs.pop("labels")
            with self.accelerator.autocast():
                loss = self._summed(model(**inputs), labels)
            total += torch.stack((loss.double(), (labels != IGNORED).sum().double()))
        reduced: Tensor = self.accelerator.reduce(total, reduction="sum")
        return reduced


def fit(
    model: nn.Module,
    summed: Callable[[Any, Tensor], Tensor],
    training: Batches,
    validation: Mapping[str, Batches],
    recipe: Recipe,
    out: Path,
) -> tuple[list[dict[str, Any]], bool]:
    """Train a model in place, from where the newest checkpoint in out left off.

    Args:
        summed: the model's outputs and the labels -> the loss summed over the target tokens.
        training, validation: their batches; validation by part.

    Returns:
        What was logged (step, loss, rate, validation losses), and whether `max_time` ended the run.

    Raises:
        RunError: the loss is not finite any more.
    """
    shown = ShowProgress()
    trainer = Trainer(
        summed,
        validation,
        model=model,
        args=_arguments(recipe, out / CHECKPOINTS),
        train_dataset=training,
        data_collator=_only,
        callbacks=[MarkWhole(), shown, *_ends(recipe)],
        optimizers=(make_optimizer(model, recipe), None),
    )
    if trainer.args.process_index:
        trainer.remove_callback(ShowProgress)
    newest = last_checkpoint(out / CHECKPOINTS)
    try:
        trainer.train(resume_from_checkpoint=None if newest is None else str(newest))
    finally:
        shown.stop()
    return trainer.state.log_history, _stopped(trainer)


def _ends(recipe: Recipe) -> Iterator[Any]:
    """What may end a run before its last step."""
    if recipe.max_time is not None:
        # A loss at a step of its own would count against the patience, and another model might be the best.
        yield TimeLimit(recipe.max_time, validate=recipe.patience is None)
    if recipe.patience is not None:
        yield Patience(recipe.patience)


def _stopped(trainer: Trainer) -> bool:
    """Whether the clock ended the run, and nothing else did."""
    # Asked of the trainer: it puts another object in the place of a callback that it restores.
    callbacks = trainer.callback_handler.callbacks
    over = any(isinstance(one, Patience) and one.exhausted for one in callbacks)
    return not over and any(isinstance(one, TimeLimit) and one.reached for one in callbacks)


def _arguments(recipe: Recipe, folder: Path) -> Any:
    precision = _precision(recipe)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        # An item of the data set is a batch already, and the batches are in the order that they are wanted in.
        per_device_train_batch_size=1,
        train_sampling_strategy="sequential",
        num_train_epochs=1,
        gradient_accumulation_steps=recipe.accumulate,
        lr_scheduler_type=recipe.schedule,
        warmup_steps=recipe.warmup,
        max_grad_norm=recipe.clip,
        seed=recipe.seed,
        bf16=precision == "bfloat16",
        fp16=precision == "float16",
        use_cpu=not torch.cuda.is_available(),
        ddp_backend=_backend(recipe),
        ddp_find_unused_parameters=False,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=recipe.every,
        save_steps=recipe.every,
        save_total_limit=_KEPT,
        load_best_model_at_end=recipe.patience is not None,
        metric_for_best_model="eval_loss",
        greater_is_better=False,
        logging_steps=min(recipe.every, 50),
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to="none",
        dataloader_pin_memory=False,
        restore_callback_states_from_checkpoint=recipe.patience is not None,
    )
    # One process uses one GPU: the library would hand it a batch for every GPU that it sees.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


def _backend(recipe: Recipe) -> str | None:
    if recipe.processes == 1:
        return None
    return "nccl" if torch.cuda.is_available() else "gloo"


def _precision(recipe: Recipe) -> str:
    if recipe.precision != "auto":
        return recipe.precision
    return "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float32"


def _only(batches: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    (batch,) = batches
    return batch
