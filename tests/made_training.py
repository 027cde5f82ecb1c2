"""Small training jobs for the tests: a few made texts, a tiny checkpoint, the shortest way to train on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bild_bench.tasks import load_task
from bild_bench.training.job import Job
from bild_bench.training.recipe import Recipe
from bild_bench.training.run import train
from bild_bench.training.texts import Source
from tests.made_data import jsonl

TEXTS = [
    {"source": f"the dog sees {'a cat near ' * (i % 4)}the house", "target": f"a man {'the ' * (i % 3)}{chr(97 + i)}"}
    for i in range(16)
]
QUICK = {"batch_texts": 4, "epochs": None, "steps": 1, "every": 2, "threads": 1, "precision": "float32"}


def texts(folder: Path) -> Path:
    """A folder with a training and a validation split."""
    jsonl(folder / "train.jsonl", TEXTS)
    jsonl(folder / "validation.jsonl", TEXTS[:4])
    return folder


def source(data: Path, **given: Any) -> Source:
    return Source(load_task("custom"), str(data), **given)


def job_of(data: Path, out: Path, init: Path | None, **recipe: Any) -> Job:
    """A job on the custom task; of a new model where init is None."""
    start: dict[str, Any] = {"size": "little", "vocab_size": 28} if init is None else {"init": str(init)}
    return Job((source(data),), Recipe(**{**QUICK, **recipe}), out, **start)


def silent(line: str) -> None:
    pass


def trained(data: Path, out: Path, init: Path | None, **recipe: Any) -> dict[str, Any]:
    """Train to the end, and return the run's record."""
    return train(job_of(data, out, init, **recipe), silent)
