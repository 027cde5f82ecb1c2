"""What one training run is asked to do, and its folder: the same request goes on, another one is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bild_bench.directories import LOCK
from bild_bench.errors import DataError, UsageError, unknown_name
from bild_bench.json_files import read_json_object
from bild_bench.parquet import writing
from bild_bench.training.callbacks import CHECKPOINTS, last_checkpoint
from bild_bench.training.recipe import Recipe
from bild_bench.training.sizes import SIZES
from bild_bench.training.texts import Source
from bild_bench.whole_files import write_whole

RECORD = "training.json"
ALIGNMENT = "alignment.json"
CALIBRATION = "calibration"
OWN_TOKENIZER = "tokenizer"
# What may change from call to call without changing the weights that come out, or is the way to get more of them.
_FREE = ("max_time",)


@dataclass(frozen=True)
class Calibration:
    """Targets that a large model generates, in place of the references (BiLD's "model prediction alignment").

    Args:
        large: folder or hub id of the model that generates them.
        share: of the training texts that it decodes, above 0 to 1.
        decode_batch: tokens of one batch that it decodes: of the sources with padding, and the limit of the targets.

    Raises:
        UsageError: a value out of range.
    """

    large: str
    share: float = 1.0
    decode_batch: int = 8192

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UsageError("--share", self.share, "must be above 0 and at most 1", "leave it out for all texts")
        if self.decode_batch < 1:
            raise UsageError("--decode-batch", self.decode_batch, "must be 1 or more", "leave it out for 8192")


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
        calibration: train on a large model's texts, which lie in `out`; None for the references.

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
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        if (self.init is None) == (self.size is None):
            raise UsageError("--init/--size", f"{self.init} and {self.size}", "needs one of the two", "leave one out")
        if self.size is not None and self.size not in SIZES:
            # Here, and not once the folder belongs to a run that cannot be.
            raise unknown_name("--size", self.size, SIZES)
        if self.init is not None and (self.tokenizer is not None or self.vocab_size is not None):
            fix = "leave it out: a trained model knows only its own"
            raise UsageError("--tokenizer/--vocab-size", self.tokenizer or self.vocab_size, "goes with --size", fix)
        if self.size is not None and (self.tokenizer is None) == (self.vocab_size is None):
            fix = "give --vocab-size 8000 to train one, or --tokenizer PATH"
            raise UsageError("--tokenizer/--vocab-size", None, "a new model needs one of the two", fix)
        if self.recipe.objective == "calm-classifier" and self.init is None:
            raise UsageError("--objective", "calm-classifier", "needs a trained model", "give one with --init")
        if self.calibration is not None and (self.init is None or self.recipe.objective == "calm-classifier"):
            problem = "only a whole model that is there can be aligned"
            raise UsageError("--small", self.init, problem, "give a checkpoint, and another objective")

    def described(self) -> dict[str, Any]:
        """All that the weights depend on, as JSON values."""
        sources = [{**asdict(source), "task": source.task.name} for source in self.sources]
        start = {name: getattr(self, name) for name in ("init", "size", "tokenizer", "vocab_size")}
        written = {} if self.calibration is None else asdict(self.calibration)
        plain: dict[str, Any] = json.loads(json.dumps({"sources": sources, **start, **asdict(self.recipe), **written}))
        return plain


def prepare_folder(job: Job) -> None:
    """Make the run's folder, unless it is there.

    Raises:
        UsageError: it holds something else, or cannot be made.
    """
    if not (job.out / RECORD).is_file():
        # A killed process may have left the draft of its first record.
        written = (f"{RECORD}.part", *(() if job.calibration is None else (ALIGNMENT, CALIBRATION)))
        make_folder(job.out, written, "is not empty and holds no training run")


def open_folder(job: Job, found: Mapping[str, Any]) -> None:
    """Begin the run's record, or check that the folder holds this same run. Call within `directories.lock`.

    What ended before its first checkpoint holds nothing: any run may begin in its place.

    Args:
        found: fingerprints of what the request names; they must not have changed either.

    Raises:
        UsageError: the folder holds another run.
        DataError: its record is damaged, or what the request names has changed.
    """
    wanted = {**job.described(), "found": dict(found)}
    if (job.out / RECORD).is_file() and _holds_work(job):
        kept = read_record(job.out)["asked"]
        refuse_another(job.out, kept, wanted)
        for role, now in found.items():
            if kept["found"][role] != now:
                problem = f"its files have changed since {job.out} was begun"
                fix = "put the old ones back, or choose another --out"
                raise DataError(f"--{role}", getattr(job, role), problem, fix)
        return
    with writing(job.out, "--out"):
        if job.vocab_size is not None:
            # It may come from other texts.
            shutil.rmtree(job.out / OWN_TOKENIZER, ignore_errors=True)
        write_record(job.out, {"asked": wanted, "command": job.command, "finished": False})


def _holds_work(job: Job) -> bool:
    """Whether a run in the job's folder left anything that another one would spoil."""
    if job.calibration is None and (job.out / ALIGNMENT).is_file():
        return True
    trained = (job.out / "model.safetensors").is_file() or last_checkpoint(job.out / CHECKPOINTS) is not None
    return trained or bool(read_record(job.out)["finished"])


def make_folder(out: Path, allowed: Collection[str], problem: str) -> None:
    """Make a folder, unless it is there.

    Args:
        allowed: names that may be in it.
        problem: what is wrong with it where others are.

    Raises:
        UsageError: there are others, or it cannot be made.
    """
    with writing(out, "--out"):
        out.mkdir(parents=True, exist_ok=True)
        if any(entry.name not in (LOCK, *allowed) for entry in out.iterdir()):
            raise UsageError("--out", str(out), problem, "choose another folder")


def refuse_another(out: Path, kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Compare what a folder was begun with to what is asked for now.

    Raises:
        UsageError: they differ; the first setting that does is named.
    """
    before, after = _by_option(kept), _by_option(wanted)
    for name in sorted(after.keys() | before.keys()):
        was, now = before.get(name), after.get(name)
        if was != now and name not in _FREE:
            option = name.replace("_", "-")
            problem = f"{out} holds a run with {option} = {was}"
            raise UsageError(f"--{option}", now, problem, "choose another --out, or the same settings")


def _by_option(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as people give them: those of the sources each as a list."""
    sources = asked["sources"]
    options = {name: [source[name] for source in sources] for name in sources[0]}
    # The option has another name than the field.
    options["validation_data"] = options.pop("validation")
    return options | {name: value for name, value in asked.items() if name not in ("sources", "found")}


def read_record(out: Path, name: str = RECORD) -> dict[str, Any]:
    """The run's record.

    Raises:
        DataError: it is damaged.
    """
    try:
        return read_json_object(out / name, "--out")
    except (OSError, DataError) as error:
        problem = error.problem if isinstance(error, DataError) else error.strerror
        raise DataError("--out", str(out / name), f"cannot be read ({problem})", "choose another --out") from error


def write_record(out: Path, record: Mapping[str, Any], name: str = RECORD) -> None:
    """Put the record in place as a whole."""
    write_whole(out / name, (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode())
