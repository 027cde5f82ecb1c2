"""Past experiments below some directories: what each was and how far it came, without reading its figures.

Only a few columns of the samples are read, so that a folder of many sweeps is listed at once; damage elsewhere in a
file is found by `report`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from bild_bench import results
from bild_bench.errors import DataError, UsageError
from bild_bench.parquet import load_table
from bild_bench.report.stored import stored_points
from bild_bench.schema import SAMPLE_SCHEMA, RunRecord

_COLUMNS = ["experiment_id", "point_id", "text_id", "role", "status"]


@dataclass(frozen=True, kw_only=True)
class Past:
    """One experiment; None where a damaged one does not tell.

    Args:
        started: UTC.
        points: the labels of all points, the baseline's among them.
        texts, finished: how many texts it has, and how many are decoded.
        failed: rows that ended in an error.
        reason: what is damaged, the file named; None where nothing is.
    """

    directory: Path
    status: Literal["complete", "unfinished", "damaged"]
    started: datetime | None = None
    task: str | None = None
    data: str | None = None
    split: str | None = None
    pair: str | None = None
    points: tuple[str, ...] | None = None
    texts: int | None = None
    finished: int | None = None
    failed: int | None = None
    reason: str | None = None

    @property
    def told(self) -> str:
        """The status in words, such as "unfinished: 12 of 60 texts"."""
        if self.status == "damaged":
            return f"damaged: {self.reason}"
        if self.status == "unfinished":
            return f"unfinished: {self.finished} of {self.texts} texts"
        return f"complete, {self.failed} rows failed" if self.failed else "complete"

    def as_dict(self) -> dict[str, Any]:
        """JSON values; the time in ISO 8601."""
        started = None if self.started is None else self.started.isoformat(timespec="seconds")
        points = None if self.points is None else list(self.points)
        return {**vars(self), "directory": str(self.directory), "started": started, "points": points}


def past_experiments(paths: Sequence[Path]) -> list[Past]:
    """Every experiment at or below the paths, the newest first; damaged ones of unknown date last.

    Raises:
        UsageError: a path that is not a directory.
    """
    for path in paths:
        if not path.is_dir():
            raise UsageError("RESULTS", str(path), "is not a directory", "give a directory that bild-bench wrote into")
    found: dict[Path, Past] = {}
    for path in paths:
        for past in _below(path):
            found.setdefault(past.directory.resolve(), past)
    oldest = datetime.min.replace(tzinfo=UTC)
    by_name = sorted(found.values(), key=lambda past: str(past.directory))
    return sorted(by_name, key=lambda past: oldest if past.started is None else past.started, reverse=True)


def _below(path: Path) -> Iterator[Past]:
    closed: list[OSError] = []
    for folder, folders, files in os.walk(path, onerror=closed.append):
        directory, names = Path(folder), {*folders, *files}
        shards = directory / results.SHARDS
        # Samples without their run are an experiment that lost a file, not nothing.
        if names & {results.RUN, results.SAMPLES} or (results.SHARDS in folders and any(shards.glob("*.parquet"))):
            yield _past(directory)
        folders[:] = [name for name in folders if name != results.SHARDS]
    for error in closed:
        yield Past(directory=Path(error.filename), status="damaged", reason=f"cannot be read ({error.strerror})")


def _past(directory: Path) -> Past:
    known = Past(directory=directory, status="damaged")
    # Whatever a file holds, it is a row of the list and never its end.
    try:
        run = results.read_run(directory)
        known = _described(directory, run)
        rows = _rows(directory, run)
        results.check_rows(rows, run, directory)
        if run.status == "complete" and (directory / results.SUMMARY).exists():
            stored_points(directory, run)
    except DataError as error:
        return replace(known, status="damaged", reason=_reason(error, directory))
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return replace(known, status="damaged", reason=reason)
    finished = len(rows["text_id"].unique())
    failed = rows["status"].to_pylist().count("error")
    return replace(known, finished=finished, failed=failed)


def _described(directory: Path, run: RunRecord) -> Past:
    return Past(
        directory=directory,
        status="complete" if run.status == "complete" else "unfinished",
        started=_moment(run.created_at),
        task=run.task,
        data=run.data_label,
        split=run.split,
        pair=run.pair_label,
        points=tuple(point["point"] for point in run.points),
        texts=run.texts,
    )


def _rows(directory: Path, run: RunRecord) -> pa.Table:
    """The rows so far, of a few columns; the writer may merge and remove the shards in between."""
    merged = directory / results.SAMPLES
    if run.status != "complete" and not merged.exists():
        try:
            shards = sorted((directory / results.SHARDS).glob("*.parquet"))
            held = [load_table(shard, SAMPLE_SCHEMA, _COLUMNS) for shard in shards]
            empty = pa.schema([SAMPLE_SCHEMA.field(name) for name in _COLUMNS]).empty_table()
            return pa.concat_tables([empty, *held])
        except FileNotFoundError:
            pass
    try:
        return load_table(merged, SAMPLE_SCHEMA, _COLUMNS)
    except FileNotFoundError:
        raise DataError("results", str(directory), f"{results.SAMPLES} is missing", "restore it from a copy") from None


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _reason(error: DataError, directory: Path) -> str:
    """The problem with the file's name, which is all of the path that is not in the row already."""
    if error.value == str(directory):
        return error.problem
    return f"{Path(str(error.value)).name}: {error.problem}"
