"""What happens between steps: checkpoints marked whole, the clock watched, progress shown."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bild_bench.quiet import stderr_console

CHECKPOINTS = "checkpoints"
_WHOLE = "complete"


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written to its end; a killed run may leave half of one."""
    whole = [path.parent for path in folder.glob(f"checkpoint-*/{_WHOLE}")]
    return max(whole, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=None)


def remove_unfinished(folder: Path) -> None:
    """Remove checkpoints that a killed run left half; they would count when the library removes the oldest."""
    for path in folder.glob("checkpoint-*"):
        if not (path / _WHOLE).exists():
            shutil.rmtree(path)


class MarkWhole(transformers.TrainerCallback):
    """Leaves a mark in every checkpoint once all its files are there."""

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            (Path(args.output_dir) / f"checkpoint-{state.global_step}" / _WHOLE).touch()


class TimeLimit(transformers.TrainerCallback):
    """Ends the run with a checkpoint once `minutes` have gone by; `reached` says whether it did.

    `validate` asks for a validation loss there too.
    """

    def __init__(self, minutes: float, validate: bool) -> None:
        self._end = time.monotonic() + 60 * minutes
        self._validate = validate
        self.reached = False

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if _any_process(time.monotonic() >= self._end) and state.global_step < state.max_steps:
            self.reached = True
            control.should_training_stop = control.should_save = True
            control.should_evaluate = control.should_evaluate or self._validate
        return control


class Patience(transformers.EarlyStoppingCallback):
    """The library's early stopping, which also holds where a run was killed between its stop and its end."""

    @property
    def exhausted(self) -> bool:
        """Whether it has ended the run."""
        return bool(self.early_stopping_patience_counter >= self.early_stopping_patience)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self.exhausted:
            control.should_training_stop = True
            control.should_evaluate = control.should_save = False
        return control


def _any_process(flag: bool) -> bool:
    """One process must not stop while the others wait for its gradients."""
    if not torch.distributed.is_initialized():
        return flag
    flags = torch.tensor(int(flag))
    torch.distributed.all_reduce(flags, op=torch.distributed.ReduceOp.MAX)
    return bool(flags.item())


class ShowProgress(transformers.TrainerCallback):
    """A bar on a terminal, with the time left; in a log one line with each validation loss."""

    def __init__(self) -> None:
        console = stderr_console()
        columns = (
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
        )
        self._progress = Progress(*columns, console=console, disable=console.quiet or not console.is_terminal)
        self._console, self._losses = console, {"loss": "", "validation": ""}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._progress.start()
        self._bar = self._progress.add_task("training", total=state.max_steps, completed=state.global_step, losses="")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._progress.update(self._bar, completed=state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        found = {} if logs is None else logs
        for name, key in (("loss", "loss"), ("validation", "eval_loss")):
            if key in found:
                self._losses[name] = f"{name} {float(found[key]):.3f}"
        told = "  ".join(filter(None, self._losses.values()))
        self._progress.update(self._bar, losses=told)
        if "eval_loss" in found and not self._console.is_terminal:
            self._console.print(
                f"step {state.global_step:,} of {state.max_steps:,}: {told}", markup=False, soft_wrap=True
            )

    def stop(self) -> None:
        """Give the terminal back."""
        self._progress.stop()
