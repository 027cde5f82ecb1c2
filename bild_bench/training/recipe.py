"""How a model is trained: every setting in one frozen record, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bild_bench.checks import check_processes, check_seed, check_threads
from bild_bench.decoding.typed import typed
from bild_bench.errors import UsageError

Objective = Literal["standard", "early-exit", "calm", "calm-classifier"]
Optimizer = Literal["adafactor", "adamw"]
Schedule = Literal["constant", "constant_with_warmup", "linear", "cosine", "inverse_sqrt"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]

# All batches are planned before the first step, about 200 bytes each.
MOST_BATCHES = 2_000_000

_AT_LEAST_ONE = ("exit_layer", "batch_texts", "batch_tokens", "accumulate", "steps", "every", "patience")
_POSITIVE = ("rate", "epochs", "max_time", "clip")


@dataclass(frozen=True)
class Recipe:
    """Settings of one training run; field names are those of the options of `bild-bench train`.

    Args:
        objective: what is learned; see `objectives.py` and `classifier.py`.
        exit_layer: k of early-exit, from 1.
        optimizer: "adafactor" or "adamw".
        rate: learning rate at its highest.
        scale_rate: multiply it by the root mean square of each tensor, as T5 was trained: at the start (adamw), or at
            each step (adafactor).
        schedule: of the rate, by the library's names.
        warmup: steps until the rate is at its highest; "constant" has none.
        batch_texts, batch_tokens: size of one process's batch, by texts or by source and target tokens with padding;
            one of them is None.
        accumulate: batches whose gradients are summed before a step.
        epochs, steps: length of the run; one of them is None.
        weight_decay, clip: of the weights; of the gradient's norm.
        dropout: None leaves the model's.
        precision: of the products, "auto" being bfloat16 on a GPU that has it; weights and optimizer are float32.
        every: steps between checkpoints; each comes with a validation loss.
        patience: stop after this many checkpoints without a lower validation loss, and keep the best; None for neither.
        max_time: minutes after which this call ends; the same command goes on.
        source_limit, target_limit: tokens at most, the end token included; None for the task's.
        seed: of new weights, order and dropout.
        threads: CPU threads of each process; None leaves them as they are.
        processes: that share the batches.

    Raises:
        UsageError: a value of another type or out of range, or two that exclude each other.
    """

    objective: Objective = "standard"
    exit_layer: int = 1
    optimizer: Optimizer = "adafactor"
    rate: float = 2e-4
    scale_rate: bool = False
    schedule: Schedule = "constant"
    warmup: int = 0
    batch_texts: int | None = 16
    batch_tokens: int | None = None
    accumulate: int = 1
    epochs: float | None = 3.0
    steps: int | None = None
    weight_decay: float = 0.0
    clip: float = 1.0
    dropout: float | None = None
    precision: Precision = "auto"
    every: int = 500
    patience: int | None = None
    max_time: float | None = None
    source_limit: int | None = None
    target_limit: int | None = None
    seed: int = 0
    threads: int | None = None
    processes: int = 1

    def __post_init__(self) -> None:
        for name, value in typed(type(self), dict(vars(self))).items():
            # The way to set a field of a frozen dataclass while it is made.
            object.__setattr__(self, name, value)
        check_seed(self.seed)
        check_threads(self.threads)
        check_processes(self.processes)
        for name, kind in (
            *(("objective", Objective), ("optimizer", Optimizer)),
            *(("schedule", Schedule), ("precision", Precision)),
        ):
            _check_choice(name, getattr(self, name), get_args(kind))
        for name in _AT_LEAST_ONE:
            _check(name, getattr(self, name), lambda value: value >= 1, "must be 1 or more")
        for name in _POSITIVE:
            _check(name, getattr(self, name), lambda value: 0 < value < math.inf, "must be above 0 and finite")
        for name in ("source_limit", "target_limit"):
            _check(name, getattr(self, name), lambda value: value >= 2, "must be 2 or more (one token and the end)")
        for name in ("warmup", "weight_decay"):
            _check(name, getattr(self, name), lambda value: 0 <= value < math.inf, "must be 0 or more and finite")
        _check("dropout", self.dropout, lambda value: 0 <= value < 1, "must be 0 or more and below 1")
        _check(
            "exit_layer",
            self.exit_layer,
            lambda value: value == 1 or self.objective == "early-exit",
            f"means nothing to --objective {self.objective}",
            "leave it out, or choose --objective early-exit",
        )
        _check_one_of(self, "batch_texts", "batch_tokens")
        _check_one_of(self, "epochs", "steps")
        shared = self.accumulate * self.processes
        rule = f"makes {shared:,} batches per step, and at most {MOST_BATCHES:,} are allowed"
        _check("accumulate", self.accumulate, lambda _: shared <= MOST_BATCHES, rule, "ask for fewer")
        batches = (self.steps or 0) * shared
        rule = f"makes {batches:,} batches, and at most {MOST_BATCHES:,} are allowed"
        _check("steps", self.steps, lambda _: batches <= MOST_BATCHES, rule, "ask for fewer, and go on from --init")


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(_flag(name), value, f"must be one of {', '.join(allowed)}", "choose one of these")


def _check(name: str, value: Any, holds: Any, rule: str, fix: str = "leave it out for the default") -> None:
    if value is not None and not holds(value):
        raise UsageError(_flag(name), value, rule, fix)


def _check_one_of(recipe: Recipe, first: str, second: str) -> None:
    if (getattr(recipe, first) is None) == (getattr(recipe, second) is None):
        given = f"{getattr(recipe, first)} and {getattr(recipe, second)}"
        raise UsageError(
            f"{_flag(first)}/{_flag(second)}", given, "needs one of the two, and only one", "leave one out"
        )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
