"""A comparison as tables for people, narrow enough for 80 columns, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bild_bench.measure.intervals import Estimate
from bild_bench.report.columns import UNKNOWN
from bild_bench.report.compare import Comparison, Section
from bild_bench.report.compare_points import PointPair
from bild_bench.report.export import figure
from bild_bench.report.paper import metric_name
from bild_bench.report.regressions import Regression
from bild_bench.report.table import print_lines, strict_values

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# What fits into a terminal's memory and a reader's; --json has all.
_MOST_ROWS = 40

_Cell = Callable[[PointPair], str]


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Each matched pair of experiments: what differs, quality, speed-ups, seconds; then what only one set has."""
    from rich.text import Text

    def say(line: str = "") -> None:
        print_lines(console, [line])

    for number, section in enumerate(comparison.sections, start=1):
        run = section.a.run
        counted = "" if len(comparison.sections) == 1 else f"{number} of {len(comparison.sections)}: "
        shared = "1 shared text" if section.texts == 1 else f"{section.texts} shared texts"
        console.print(Text(f"{counted}{run.data_label} ({run.split}), {shared}", style="bold"))
        say(f"A: {section.a.directory}")
        say(f"B: {section.b.directory}")
        say()
        if not section.differences:
            say("no field of the configuration differs\n")
        for heading, table in _tables(section):
            say(heading)
            console.print(table)
            say()
        for note in section.notes:
            say(f"warning: {note}")
        say()
    for name, points in (("A", comparison.only_a), ("B", comparison.only_b)):
        for line in _only(name, points):
            say(line)


def to_json(comparison: Comparison, regressions: Sequence[Regression], untested: Sequence[str]) -> dict[str, Any]:
    """Everything as strict JSON values: unknown, and an interval that one text cannot have, is null."""
    found = {
        "sections": [_section(section) for section in comparison.sections],
        "only_a": [_named(*point) for point in comparison.only_a],
        "only_b": [_named(*point) for point in comparison.only_b],
        "damaged": comparison.damaged,
        "regressions": [asdict(regression) for regression in regressions],
        "untested": untested,
    }
    values: dict[str, Any] = strict_values(found)
    return values


def _section(section: Section) -> dict[str, Any]:
    run = section.a.run
    return {
        "a": str(section.a.directory),
        "b": str(section.b.directory),
        **{name: getattr(run, name) for name in ("task", "data_label", "split", "metric")},
        "texts": section.texts,
        "same_machine": section.same_machine,
        "differences": [asdict(difference) for difference in section.differences],
        "points": [asdict(point) for point in section.points],
        "warnings": section.notes,
    }


def _named(directory: str, label: str) -> dict[str, str]:
    return {"directory": directory, "point": label}


def _tables(section: Section) -> list[tuple[str, Table]]:
    """Each with its heading, which a table's own title would wrap to the table's width."""
    signatures = ", ".join(dict.fromkeys(point.quality.signature for point in section.points))
    found = [("what differs", _differences(section))] if section.differences else []
    metric = metric_name(section.a.run.metric)
    found.append((f"{metric}, and B - A [95 %, paired over texts]\n{signatures}", _quality(section.points)))
    for name in ("decoding", "total"):
        found.append((f"{name} speed-up, each over its own baseline [95 %]", _speedups(section.points, name)))
    if section.same_machine:
        heading = "seconds on the same machine: more than 1 is slower [95 %, paired over texts]"
        found.append((heading, _seconds(section.points)))
    return found


def _differences(section: Section) -> Table:
    from rich.text import Text

    table = _empty()
    for name, ratio in (("field", 2), ("A", 3), ("B", 3)):
        table.add_column(name, overflow="fold", ratio=ratio)
    for difference in section.differences:
        table.add_row(*(Text(value) for value in (difference.field, difference.a, difference.b)))
    return table


def _quality(points: Sequence[PointPair]) -> Table:
    cells: dict[str, _Cell] = {
        "A": lambda point: figure(point.quality.a, 2),
        "B": lambda point: figure(point.quality.b, 2),
        "B - A": lambda point: _interval(point.quality.difference, "+.2f"),
        "same ids": lambda point: figure(point.identical_pct, 0, " %"),
        "texts": lambda point: str(point.texts),
    }
    return _filled(points, cells)


def _speedups(points: Sequence[PointPair], name: str) -> Table:
    cells: dict[str, _Cell] = {
        "A": lambda point: _interval(getattr(point, name).a, ".2f", "x"),
        "B": lambda point: _interval(getattr(point, name).b, ".2f", "x"),
        "B / A": lambda point: _interval(getattr(point, name).speedup_ratio, ".2f"),
    }
    return _filled(points, cells)


def _seconds(points: Sequence[PointPair]) -> Table:
    cells: dict[str, _Cell] = {
        "decoding B / A": lambda point: _interval(point.decoding.time_ratio, ".2f"),
        "total B / A": lambda point: _interval(point.total.time_ratio, ".2f"),
        "ms/token A": lambda point: figure(point.ms_per_token_a, 2),
        "ms/token B": lambda point: figure(point.ms_per_token_b, 2),
    }
    return _filled(points, cells)


def _filled(points: Sequence[PointPair], cells: dict[str, _Cell]) -> Table:
    from rich.text import Text

    table = _empty()
    table.add_column("point", overflow="fold")
    for name in cells:
        table.add_column(name, justify="right", no_wrap=True)
    # Text and not str: rich takes square brackets in a str for markup.
    for point in points[:_MOST_ROWS]:
        table.add_row(Text(point.point), *(Text(cell(point)) for cell in cells.values()))
    if len(points) > _MOST_ROWS:
        table.add_row(Text(f"{len(points) - _MOST_ROWS} more: --json has all"))
    return table


def _empty() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))


def _only(name: str, points: Sequence[tuple[str, str]]) -> list[str]:
    lines = [f"only in {name}: {label} ({directory})" for directory, label in points[:_MOST_ROWS]]
    if len(points) > _MOST_ROWS:
        lines.append(f"only in {name}: {len(points) - _MOST_ROWS} more: --json has all")
    return lines


def _interval(estimate: Estimate | None, form: str, unit: str = "") -> str:
    if estimate is None:
        return UNKNOWN
    value = f"{estimate.value:{form}}{unit}"
    # No interval to show: NaN (one text), or no width (the same texts, the baseline against itself).
    if not estimate.low < estimate.high:
        return value
    return f"{value} [{estimate.low:{form}}, {estimate.high:{form}}]"
