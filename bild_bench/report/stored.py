"""A point's figures as summary.parquet holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError
from bild_bench.measure.intervals import Estimate
from bild_bench.measure.quality import Score
from bild_bench.parquet import foreign, load_table
from bild_bench.report.point import PointSummary
from bild_bench.results import SUMMARY
from bild_bench.schema import RunRecord

_ESTIMATES = {field.name for field in fields(PointSummary) if "Estimate" in str(field.type)}
_SCORES = {field.name for field in fields(PointSummary) if "Score" in str(field.type)}


def stored_points(directory: Path, run: RunRecord | None = None) -> tuple[PointSummary, ...]:
    """The inverse of `point.summary_frame`, from a complete experiment's file.

    Figures that earlier versions did not have (those with a default in `PointSummary`) are None in their files.

    Args:
        run: the experiment's; None to take whatever points the file has.

    Raises:
        DataError: the file is missing, damaged, foreign, or of another run; it is named.
    """
    path = directory / SUMMARY
    try:
        rows = load_table(path, None).to_pylist()
    except FileNotFoundError:
        raise DataError("results", str(path), "is missing", "restore it from a copy") from None
    try:
        points = tuple(_point(row) for row in rows)
    except (KeyError, TypeError, ValueError):
        raise foreign(path) from None
    described = None if run is None else [(point["point_id"], point["point"]) for point in run.points]
    if described is not None and [(point.point_id, point.point) for point in points] != described:
        raise DataError("results", str(path), "is of another run", "restore it from a copy")
    return points


def _point(row: Mapping[str, Any]) -> PointSummary:
    found: dict[str, Any] = {}
    for field in fields(PointSummary):
        name = field.name
        column = f"{name}_value" if name in _SCORES else name
        if column not in row and field.default is not MISSING:
            continue
        if name in _ESTIMATES:
            found[name] = _estimate(row, name)
        elif name in _SCORES:
            metric: Any = row["quality_metric"] if name == "quality" else name
            found[name] = None if row[column] is None else Score(metric, row[column], row[f"{name}_signature"])
        else:
            found[name] = row[name]
        _check(str(field.type), found[name])
    return PointSummary(**found)


def _check(kind: str, value: object) -> None:
    """Raises ValueError where a value is not of a field's kind, such as "int | None"; an interval's ends may be NaN."""
    base, _, optional = kind.partition(" | ")
    if value is None and optional == "None":
        return
    figures = {"Score": "value", "Estimate": "value"}
    figure = getattr(value, figures[base]) if base in figures else value
    fits = isinstance(figure, {"str": str, "int": int}.get(base, int | float)) and not isinstance(figure, bool)
    if not fits or (isinstance(figure, float) and not math.isfinite(figure)):
        raise ValueError(f"{value!r} is no {kind}")
    if isinstance(value, Score) and not (isinstance(value.metric, str) and isinstance(value.signature, str)):
        raise ValueError("a score without its signature")
    if isinstance(value, Estimate) and not all(isinstance(end, int | float) for end in (value.low, value.high)):
        raise ValueError("an interval that is no pair of numbers")


def _estimate(row: Mapping[str, Any], name: str) -> Estimate | None:
    if row[name] is None:
        return None
    # A table of nullable figures keeps the NaN of an interval that one text cannot have as a null.
    low, high = (float("nan") if row[f"{name}_{end}"] is None else row[f"{name}_{end}"] for end in ("low", "high"))
    return Estimate(row[name], low, high)
