"""What a new experiment may take over from an earlier one: rows of the same point and text from the same machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from pathlib import Path
from typing import Any

from bild_bench import results
from bild_bench.decoding.records import TraceStep
from bild_bench.schema import RunRecord, SampleRecord


def kept_samples(directory: Path, run: RunRecord) -> dict[str, list[SampleRecord]]:
    """Text id -> rows that the run may keep.

    A row is kept if its point's identity, its text's identity and draw belong to the run, it was measured on the same
    machine (times count nowhere else), and it did not fail.

    Args:
        directory: of the earlier experiment, finished or not.
        run: the new one.

    Raises:
        DataError: there is no experiment in the directory.
    """
    earlier = results.read(directory)
    if earlier.run.machine != run.machine:
        return {}
    described = {point["point_id"]: point for point in run.points}
    draws, texts = int(run.configuration["draws"]), set(run.texts_expected)
    kept: dict[str, list[SampleRecord]] = defaultdict(list)
    rows: Any = earlier.samples.to_dict("records")
    for row in rows:
        known = row["point_id"] in described and row["text_id"] in texts and row["draw"] < draws
        if known and row["status"] == "ok":
            kept[row["text_id"]].append(_sample(row, run, described[row["point_id"]]))
    return dict(kept)


def _sample(row: dict[str, Any], run: RunRecord, point: dict[str, Any]) -> SampleRecord:
    values = {field.name: _plain(row[field.name]) for field in fields(SampleRecord)}
    if values["trace"] is not None:
        values["trace"] = [TraceStep(**step) for step in values["trace"]]
    values |= {"experiment_id": run.experiment_id, "point": point["point"], "role": point["role"]}
    return SampleRecord(**values)


def _plain(value: Any) -> Any:
    """A cell of the samples' frame as the record had it: lists for arrays, None for what is missing."""
    import pandas as pd

    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list) and pd.isna(value):
        return None
    return value
