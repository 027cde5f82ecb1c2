"""The Parquet store: one experiment, one directory, and never half a file.

While it runs, every finished text is a shard of its own under shards/. `complete` merges them into samples.parquet;
once that is there it holds every row, and run.parquet's status says whether the last steps are done. Each file is
written beside its place and moved there in one step, so a reader sees the whole file or none, whenever the writer is
killed.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bild_bench.errors import DataError, RunError
from bild_bench.parquet import foreign, load_table, save_table, writing
from bild_bench.printable import one_line
from bild_bench.schema import (
    READABLE_VERSIONS,
    RUN_SCHEMA,
    SAMPLE_SCHEMA,
    RunRecord,
    SampleRecord,
    run_record,
    run_table,
    sample_frame,
    sample_table,
)

if TYPE_CHECKING:
    import pandas as pd

RUN, SAMPLES, SUMMARY, SHARDS = "run.parquet", "samples.parquet", "summary.parquet", "shards"

_FIELD = "results"


@dataclass(frozen=True, repr=False)
class Experiment:
    """A run and its samples so far.

    samples: one row per text x point x draw, in the data set's order, then the points', then draws; columns and their
        types: `schema.SAMPLE_SCHEMA` and `schema.sample_frame`.
    """

    run: RunRecord
    samples: pd.DataFrame
    directory: Path

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Every figure of every point, one row each: the columns of summary.parquet; see `report.summary`.

        Raises:
            DataError: a recorded time is negative or not finite.
        """
        # Imported late because the report stands on this module.
        from bild_bench.report.summary import summarise, summary_frame

        return summary_frame(summarise(self))

    def __repr__(self) -> str:
        run = self.run
        done = self.samples["text_id"].nunique()
        texts = f"{run.texts} texts" if done == run.texts else f"{done} of {run.texts} texts"
        about = f"{run.data_label} ({run.split}), pair {run.pair_label}, {len(run.points)} points, {texts}"
        return one_line(f"Experiment({str(self.directory)!r}: {about}, {run.status})")


def find_unfinished(root: Path, experiment_id: str) -> Path | None:
    """The newest directory under root whose run has this id and is not complete; damaged ones are passed over."""
    for path in sorted(root.glob(f"*/{RUN}"), reverse=True):
        with suppress(DataError):
            run = read_run(path.parent)
            if run.experiment_id == experiment_id and run.status == "running":
                return path.parent
    return None


def create(directory: Path, run: RunRecord) -> None:
    """Write run.parquet and make room for shards; the directory is made if it is missing.

    Raises:
        RunError: there is a run in it already, the expected texts' ids repeat, or the disk is full.
        UsageError: no permission, or a file is in the way.
    """
    if len(set(run.texts_expected)) != len(run.texts_expected):
        raise RunError("texts_expected", len(run.texts_expected), "ids repeat", "give every text an id of its own")
    if (directory / RUN).exists():
        raise RunError(_FIELD, str(directory), "holds a run already", "resume that run, or choose another directory")
    with writing(directory):
        (directory / SHARDS).mkdir(parents=True, exist_ok=True)
        save_table(directory / RUN, run_table(run))


def update(directory: Path, run: RunRecord) -> None:
    """Write run.parquet anew while the experiment runs. Call within `directories.lock`.

    Raises:
        RunError: the disk is full. UsageError: no permission.
    """
    with writing(directory):
        save_table(directory / RUN, run_table(run))


def write_text(directory: Path, text_id: str, samples: Sequence[SampleRecord]) -> None:
    """Write one finished text, all its points and draws, as one shard. Call within `directories.lock`.

    Raises:
        RunError: the experiment is complete, the text is written already or is none of the run's, a point and draw
            occurs twice in one process, or the disk is full; what was finished before stays.
        DataError: run.parquet is missing or damaged. UsageError: no permission.
        ValueError: no samples, or one of another text or experiment.
    """
    run = read_run(directory)
    if {(sample.text_id, sample.experiment_id) for sample in samples} != {(text_id, run.experiment_id)}:
        raise ValueError(f"the samples of one shard all belong to text {text_id} of experiment {run.experiment_id}")
    if len({(sample.point_id, sample.draw, sample.process_id) for sample in samples}) != len(samples):
        raise RunError("text", text_id, "a point and draw occurs twice in one process", "write each once")
    if run.status == "complete":
        raise RunError(_FIELD, str(directory), "complete, and never changed again", "start a new experiment")
    if text_id not in run.texts_expected:
        raise RunError("text", text_id, "not one of this run's texts", "start a new experiment")
    shard = directory / SHARDS / f"{text_id}.parquet"
    if shard.exists() or (directory / SAMPLES).exists():
        raise RunError("text", text_id, "written already", "ask finished_texts which are left")
    with writing(directory):
        save_table(shard, sample_table(samples))


def finished_texts(directory: Path) -> set[str]:
    """The ids of the texts that are written, while the experiment runs and after.

    Raises:
        DataError: samples.parquet is damaged.
    """
    if (directory / SAMPLES).exists():
        return set(load_table(directory / SAMPLES, SAMPLE_SCHEMA, ["text_id"])["text_id"].to_pylist())
    return {path.stem for path in (directory / SHARDS).glob("*.parquet")}


def complete(directory: Path, run: RunRecord) -> None:
    """Merge the shards, write summary.parquet, mark the run complete; `run` is its final record.

    Call within `directories.lock`. Safe to be killed anywhere and to be called again: every step left its whole file or
    nothing, and shards go last. The record's status is set here, and completed_at where it is None.

    Raises:
        RunError: texts are missing, `run` is another experiment's, or the disk is full.
        DataError: a file is damaged. UsageError: no permission.
    """
    stored = read_run(directory)
    if stored.experiment_id != run.experiment_id:
        raise RunError(_FIELD, str(directory), f"holds experiment {stored.experiment_id}", "complete that one there")
    if stored.status != "complete":
        _require_all_texts(directory, stored)
        end = datetime.now(UTC).isoformat(timespec="seconds") if run.completed_at is None else run.completed_at
        final = replace(run, status="complete", completed_at=end)
        table = _samples(directory, stored)
        with writing(directory):
            save_table(directory / SAMPLES, table)
        write_summary(Experiment(final, sample_frame(table), directory))
        with writing(directory):
            save_table(directory / RUN, run_table(final))
    shutil.rmtree(directory / SHARDS, ignore_errors=True)


def write_summary(experiment: Experiment) -> None:
    """Write summary.parquet, which holds nothing that the rows do not say. Call within `directories.lock`.

    Raises:
        RunError: the disk is full. UsageError: no permission.
    """
    # Imported late because the report stands on this module.
    from bild_bench.report.summary import summarise, summary_frame

    frame = summary_frame(summarise(experiment))
    with writing(experiment.directory):
        save_table(experiment.directory / SUMMARY, pa.Table.from_pandas(frame, preserve_index=False))


def read(directory: Path) -> Experiment:
    """The run and every finished text, while it runs, after a crash, and when complete.

    Raises:
        DataError: no results there, or a file (it is named) that is missing, damaged, foreign, or of another schema
            version.
    """
    run = read_run(directory)
    table = _samples(directory, run)
    check_rows(table, run, directory)
    return Experiment(run, sample_frame(table), directory)


def check_rows(table: pa.Table, run: RunRecord, directory: Path) -> None:
    """Are the rows this run's own? Only the columns that are there are looked at.

    Raises:
        DataError: rows of another experiment, or of points or texts that the run does not have; a row without a status
            or without what its status promises.
    """
    allowed = {
        "experiment_id": {run.experiment_id},
        "point_id": {point["point_id"] for point in run.points},
        "text_id": set(run.texts_expected),
        "status": {"ok", "error"},
        "role": {"baseline", "point"},
    }
    found = set(table.column_names)
    for name in allowed.keys() & found:
        foreign_to_it = set(table[name].unique().to_pylist()) - allowed[name]
        if foreign_to_it:
            problem = f"{SAMPLES} does not fit {RUN}: {name} {sorted(map(str, foreign_to_it))[0]!r} is not the run's"
            raise DataError(_FIELD, str(directory), problem, "restore both from a copy")
    promised = {"output_ids", "output_text"} & found if "status" in found else set()
    for name in promised:
        lacking = pc.sum(pc.and_(pc.equal(table["status"], "ok"), pc.is_null(table[name]))).as_py()
        if lacking:
            problem = f"{SAMPLES} has {lacking} rows of status ok without {name}"
            raise DataError(_FIELD, str(directory), problem, "restore it from a copy")


def _require_all_texts(directory: Path, run: RunRecord) -> None:
    missing = set(run.texts_expected) - finished_texts(directory)
    if missing:
        problem = f"{len(missing)} of {len(run.texts_expected)} texts are missing"
        raise RunError(_FIELD, str(directory), problem, "run the same command again to go on")


def _samples(directory: Path, run: RunRecord) -> pa.Table:
    merged = directory / SAMPLES
    table = None
    if not merged.exists() and run.status != "complete":
        with suppress(FileNotFoundError):
            table = _shards(directory, run)
    # Looked for again: the writer may have merged and removed the shards while they were read.
    if table is None or merged.exists():
        try:
            return load_table(merged, SAMPLE_SCHEMA)
        except FileNotFoundError:
            raise DataError(_FIELD, str(directory), f"{SAMPLES} is missing", "restore it from a copy") from None
    return table


def _shards(directory: Path, run: RunRecord) -> pa.Table:
    """All shards in one table, in the order that `Experiment.samples` promises."""
    shards = [load_table(path, SAMPLE_SCHEMA) for path in sorted((directory / SHARDS).glob("*.parquet"))]
    table = pa.concat_tables([SAMPLE_SCHEMA.empty_table(), *shards])
    place = {point["point_id"]: number for number, point in enumerate(run.points)}
    keys = zip(*(table[name].to_pylist() for name in ("text_index", "point_id", "draw")), strict=True)
    order = [(text, place.get(point, len(place)), draw) for text, point, draw in keys]
    return table.take(pa.array(sorted(range(len(order)), key=order.__getitem__), pa.int64()))


def read_run(directory: Path) -> RunRecord:
    """The run alone, without its samples; errors as `read`."""
    path = directory / RUN
    try:
        table = load_table(path, None)
    except FileNotFoundError:
        fix = "give a directory that bild-bench wrote"
        raise DataError(_FIELD, str(directory), f"no {RUN} in it", fix) from None
    versions = table["schema_version"].to_pylist() if "schema_version" in table.column_names else []
    if len(versions) == 1 and versions[0] not in READABLE_VERSIONS:
        known = " and ".join(map(str, READABLE_VERSIONS))
        problem = f"written with schema version {versions[0]}, this program reads versions {known}"
        raise DataError(_FIELD, str(path), problem, "read it with the version of bild-bench that wrote it")
    if len(versions) != 1 or not table.schema.equals(RUN_SCHEMA):
        raise foreign(path)
    try:
        return run_record(table)
    except ValueError as error:
        raise DataError(_FIELD, str(path), f"damaged ({error})", "restore it from a copy") from None
