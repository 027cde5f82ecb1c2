"""What one training run is asked to do, and its folder: the same request goes on, another one is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError, UsageError
from bild_bench.parquet import writing
from bild_bench.training.recipe import Recipe
from bild_bench.training.texts import Source

RECORD = "training.json"
# What may change from call to call without changing the weights that come out, or is the way to get more of them.
_FREE = ("max_time",)


@dataclass(frozen=True)
class Job:
    """One model to train.

    Args:
        sources: the tasks, mixed.
        init: folder or hub id of the checkpoint to start from; None for a new model.
        size: of a new model, see `sizes.py`; None with init.
        tokenizer: folder or hub id of a new model's tokenizer; None for that of init, or to train one.
        vocab_size: pieces of a tokenizer to be trained on the texts; None for none.
        recipe: how.
        out: the folder for checkpoints and the finished model.
        notes: field -> where a setting's value comes from, for the model card.
        command: the command line, for the model card.

    Raises:
        UsageError: starting points that exclude each other, or none.
    """

    sources: tuple[Source, ...]
    recipe: Recipe
    out: Path
    init: str | None = None
    size: str | None = None
    tokenizer: str | None = None
    vocab_size: int | None = None
    notes: tuple[tuple[str, str], ...] = ()
    command: str = ""

    def __post_init__(self) -> None:
        if (self.init is None) == (self.size is None):
            raise UsageError("--init/--size", f"{self.init} and {self.size}", "needs one of the two", "leave one out")
        if self.init is not None and (self.tokenizer is not None or self.vocab_size is not None):
            fix = "leave it out: a trained model knows only its own"
            raise UsageError("--tokenizer/--vocab-size", self.tokenizer or self.vocab_size, "goes with --size", fix)
        if self.size is not None and (self.tokenizer is None) == (self.vocab_size is None):
            fix = "give --vocab-size 8000 to train one, or --tokenizer PATH"
            raise UsageError("--tokenizer/--vocab-size", None, "a new model needs one of the two", fix)
        if self.recipe.objective == "calm-classifier" and self.init is None:
            raise UsageError("--objective", "calm-classifier", "needs a trained model", "give one with --init")

    def described(self) -> dict[str, Any]:
        """All that the weights depend on, as JSON values."""
        sources = [{**asdict(source), "task": source.task.name} for source in self.sources]
        start = {name: getattr(self, name) for name in ("init", "size", "tokenizer", "vocab_size")}
        plain: dict[str, Any] = json.loads(json.dumps({"sources": sources, **start, **asdict(self.recipe)}))
        return plain


def open_folder(job: Job, found: Mapping[str, Any]) -> None:
    """Make the run's folder, or check that it holds this same run.

    Args:
        found: fingerprints of what the request names; they must not have changed either.

    Raises:
        UsageError: the folder holds another run, or cannot be made. DataError: its record is damaged.
    """
    path = job.out / RECORD
    wanted = {**job.described(), "found": dict(found)}
    if path.is_file():
        kept = read_record(job.out)
        for name in wanted.keys() | kept["asked"].keys():
            was, now = kept["asked"].get(name), wanted.get(name)
            if was != now and name not in _FREE:
                problem = f"{job.out} holds a run with {name.replace('_', '-')} = {was}"
                raise UsageError(
                    f"--{name.replace('_', '-')}", now, problem, "choose another --out, or the same settings"
                )
        return
    with writing(job.out):
        job.out.mkdir(parents=True, exist_ok=True)
        if any(entry.name != ".lock" for entry in job.out.iterdir()):
            raise UsageError("--out", str(job.out), "is not empty and holds no training run", "choose another folder")
        write_record(job.out, {"asked": wanted, "command": job.command, "finished": False})


def read_record(out: Path) -> dict[str, Any]:
    """The run's record.

    Raises:
        DataError: it is damaged.
    """
    try:
        record: dict[str, Any] = json.loads((out / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError("--out", str(out / RECORD), f"cannot be read ({error})", "choose another --out") from error
    return record


def write_record(out: Path, record: Mapping[str, Any]) -> None:
    """Put the record in place as a whole."""
    draft = out / f"{RECORD}.part"
    draft.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(out / RECORD)
