"""Settings where none are given, and where each of them comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from bild_bench.training.recipe import Recipe

Setting = tuple[Any, str]

_SCRIPTS = "scripts/train_{task}_aligned_small.sh of the public reproduction PopoDev/BiLD"
_OWN = "our choice"
# Rate and steps of the reproduction's scripts: the authors' own repository holds no training script.
_PAPER_TASKS = {
    "iwslt17": ("iwslt", 2e-4, 500_000),
    "wmt14": ("wmt14", 5e-4, 100_000),
    "xsum": ("xsum", 2e-4, 100_000),
    "cnn_dm": ("cnn", 2e-4, 380_000),
}
_NEW_MODEL: dict[str, Setting] = {
    "optimizer": ("adamw", f"{_OWN}: with scaled rates a small T5 learns several times faster from random weights"),
    "scale_rate": (True, "T5 was trained this way (Raffel et al. 2020, section 3.1.2, by Adafactor)"),
    "rate": (0.05, f"{_OWN}, the best of four tried on captions; the smaller the model the higher (0.08 below 2 M)"),
    "schedule": ("cosine", _OWN),
    "warmup": (200, _OWN),
    "weight_decay": (0.01, _OWN),
    "batch_texts": (None, ""),
    "batch_tokens": (2400, f"{_OWN}: larger batches learned less per hour on a CPU"),
    "epochs": (8.0, _OWN),
    "every": (500, _OWN),
}
_TRAINED_MODEL: dict[str, Setting] = {
    **_NEW_MODEL,
    "rate": (0.02, f"{_OWN}: lower than for a new model"),
    "warmup": (50, _OWN),
    "epochs": (3.0, _OWN),
}


@dataclass(frozen=True)
class Chosen:
    """A recipe, and where each setting that nobody gave comes from."""

    recipe: Recipe
    notes: tuple[tuple[str, str], ...]


def choose_recipe(tasks: Sequence[str], new: bool, given: Mapping[str, Any]) -> Chosen:
    """The paper's settings for one of the paper's tasks, ours for everything else.

    Args:
        tasks: names of the tasks that are mixed.
        new: the model starts from random weights.
        given: fields of a `Recipe` by name; None where nobody gave it.

    Raises:
        UsageError: see `Recipe`.
    """
    paper = len(tasks) == 1 and tasks[0] in _PAPER_TASKS and not new
    settings = _of_paper(tasks[0]) if paper else _NEW_MODEL if new else _TRAINED_MODEL
    names = [field.name for field in fields(Recipe)]
    asked = {name: given[name] for name in names if given.get(name) is not None}
    # One of these stands for the other: who gives steps does not want epochs.
    replaced = {"steps": "epochs", "epochs": "steps", "batch_texts": "batch_tokens", "batch_tokens": "batch_texts"}
    values = {name: value for name, (value, _) in settings.items()}
    if paper:
        values |= {"epochs": None, "batch_tokens": None}
    for name in asked:
        if name in replaced:
            values[replaced[name]] = None
    recipe = Recipe(**{**values, **asked})
    kept = {name: source for name, (value, source) in settings.items() if value is not None and values[name] == value}
    notes = [(name, source) for name, source in kept.items() if name not in asked]
    return Chosen(recipe, tuple(notes))


def _of_paper(task: str) -> dict[str, Setting]:
    name, rate, steps = _PAPER_TASKS[task]
    scripts = _SCRIPTS.format(task=name)
    return {
        "optimizer": ("adafactor", scripts),
        "rate": (rate, scripts),
        "schedule": (
            "constant",
            scripts if name in ("iwslt", "cnn") else f"as for the other tasks; {scripts} leaves it",
        ),
        "batch_texts": (8, f"{scripts}: 8 texts, 2 batches per step"),
        "accumulate": (2, scripts),
        "steps": (steps, scripts),
        "every": (10_000, scripts),
    }
