"""Figures: a ratio with its bootstrap interval over texts, held against its target; and their Parquet file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bild_bench.errors import DataError
from bild_bench.measure.intervals import ratio_of_sums

if TYPE_CHECKING:
    import pandas

SEED = 0
Bound = Literal["at least", "at most"]


@dataclass(frozen=True)
class Figure:
    """One row of the results.

    Args:
        name: what is measured.
        shape: of which models.
        contestant: against what.
        ratio: the figure, in `unit`; None where it could not be measured, and `note` says why.
        low, high: 95 % interval over texts; None where there is none.
        target: what is to be reached; None for the record only.
        bound: whether the target is a floor or a ceiling.
        reached: None without a figure or a target.
        unit: "x" for ratios of times, "share" for parts of one, "s" for seconds, "MB" for 10^6 bytes.
        texts: how many the figure rests on.
        note: what else one must know.
    """

    name: str
    shape: str
    contestant: str
    ratio: float | None
    low: float | None
    high: float | None
    target: float | None
    bound: Bound
    reached: bool | None
    unit: str
    texts: int
    note: str


def figure(
    name: str,
    shape: str,
    contestant: str,
    top: Sequence[float],
    bottom: Sequence[float],
    *,
    target: float | None = None,
    bound: Bound = "at least",
    unit: str = "x",
    note: str = "",
) -> Figure:
    """sum(top) / sum(bottom) with its interval; a row without a figure where the times have no ratio.

    Args:
        name, shape, contestant, target, bound, unit, note: see `Figure`.
        top, bottom: seconds text by text, the same texts in the same order.
    """
    try:
        found = ratio_of_sums(top, bottom, seed=SEED)
    except DataError as error:
        # One row is lost, and not the others with it.
        return missing(name, shape, contestant, str(error), target=target, bound=bound)
    low, high = (None if math.isnan(value) else value for value in (found.low, found.high))
    reached = None if target is None else holds(found.value, target, bound)
    return Figure(name, shape, contestant, found.value, low, high, target, bound, reached, unit, len(top), note)


def missing(
    name: str, shape: str, contestant: str, reason: str, *, target: float | None = None, bound: Bound = "at least"
) -> Figure:
    """A row without a figure, and why."""
    return Figure(name, shape, contestant, None, None, None, target, bound, None, "x", 0, reason)


def holds(value: float, target: float, bound: Bound) -> bool:
    """Whether a value is on the right side of its target; on it counts."""
    return value >= target if bound == "at least" else value <= target


def on_condition(figure: Figure, condition: bool) -> Figure:
    """The figure, its target not reached where a further condition, which its note tells, does not hold."""
    return figure if figure.reached is None else replace(figure, reached=figure.reached and condition)


def save(path: Path, figures: Sequence[Figure], date: str, environment: Mapping[str, Any]) -> None:
    """One row per figure, with the date and the environment (JSON) on each."""
    import pandas

    described = json.dumps(environment, sort_keys=True)
    rows = [{**asdict(figure), "date": date, "environment": described} for figure in figures]
    table = pandas.DataFrame(rows)
    # Columns without a figure on some row must not turn into objects.
    numbers = dict.fromkeys(("ratio", "low", "high", "target"), "float64")
    path.parent.mkdir(parents=True, exist_ok=True)
    table.astype({**numbers, "reached": "boolean"}).to_parquet(path, index=False)


def load(path: Path) -> tuple[list[Figure], str, dict[str, Any]]:
    """The figures of a file, its date and its environment.

    Raises:
        DataError: the file is not there, damaged, or holds something else.
    """
    import pandas

    names = [field.name for field in fields(Figure)]
    fix = "run `make bench` first, or name a file that it wrote"
    try:
        table = pandas.read_parquet(path)
        other = unlike(table, [*names, "date", "environment"])
        if other is not None:
            raise DataError("bench results", str(path), other, fix)
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        figures = [Figure(**{name: row[name] for name in names}) for row in rows]
        return figures, str(rows[0]["date"]), dict(json.loads(rows[0]["environment"]))
    except (OSError, ValueError) as error:
        raise DataError("bench results", str(path), f"cannot be read ({error})", fix) from error


def unlike(table: pandas.DataFrame, columns: Sequence[str]) -> str | None:
    """Why a table is not one that we wrote, by its columns and its size; None if it is."""
    absent = [name for name in columns if name not in table.columns]
    if absent:
        return f"is another program's: it has no column {', '.join(absent)}"
    return None if len(table) else "holds no rows"
