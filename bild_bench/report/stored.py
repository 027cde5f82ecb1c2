"""A point's figures as summary.parquet holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError
from bild_bench.measure.intervals import Estimate
from bild_bench.measure.quality import Score
from bild_bench.parquet import foreign, load_table
from bild_bench.report.summary import PointSummary
from bild_bench.results import SUMMARY

_ESTIMATES = {field.name for field in fields(PointSummary) if "Estimate" in str(field.type)}


def stored_points(directory: Path) -> tuple[PointSummary, ...]:
    """The inverse of `summary.summary_frame`, from a complete experiment's file.

    Raises:
        DataError: the file is missing, damaged or foreign; it is named.
    """
    path = directory / SUMMARY
    try:
        rows = load_table(path, None).to_pylist()
    except FileNotFoundError:
        raise DataError("results", str(path), "is missing", "restore it from a copy") from None
    try:
        return tuple(_point(row) for row in rows)
    except (KeyError, TypeError):
        raise foreign(path) from None


def _point(row: Mapping[str, Any]) -> PointSummary:
    found: dict[str, Any] = {}
    for field in fields(PointSummary):
        name = field.name
        if name in _ESTIMATES:
            found[name] = _estimate(row, name)
        elif name == "quality":
            parts = (row["quality_metric"], row["quality_value"], row["quality_signature"])
            found[name] = None if parts[1] is None else Score(*parts)
        else:
            found[name] = row[name]
    return PointSummary(**found)


def _estimate(row: Mapping[str, Any], name: str) -> Estimate | None:
    if row[name] is None:
        return None
    # A table of nullable figures keeps the NaN of an interval that one text cannot have as a null.
    low, high = (float("nan") if row[f"{name}_{end}"] is None else row[f"{name}_{end}"] for end in ("low", "high"))
    return Estimate(row[name], low, high)
