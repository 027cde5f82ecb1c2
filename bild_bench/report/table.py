"""A summary as a table for people and as JSON for programs.

No figure is told by colour alone, and an unknown figure is "-", never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bild_bench.report.columns import cell, told_columns
from bild_bench.report.paper import metric_name
from bild_bench.report.point import PointSummary, Summary
from bild_bench.schema import RunRecord

if TYPE_CHECKING:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    from bild_bench.measure.quality import Score

# A label that takes more of a line than one part in this many is folded.
_LABEL_SHARE = 3


def render(summary: Summary, run: RunRecord, columns: tuple[str, ...] | None = None, *, note: bool = True) -> Table:
    """One row per point, with the columns asked for; those that say something (`told_columns`) where None are given.

    Speed-ups read "1.43x [1.38, 1.49]": the paired figure, total or decoding only, and its 95 % interval.

    Args:
        note: say below the table what was measured, on what, and how the quality was scored.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = told_columns(summary) if columns is None else columns
    # Text and not str throughout: rich takes square brackets in a str for markup.
    caption = Text(caption_of(summary, run)) if note else None
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.caption, table.caption_justify, table.caption_style = caption, "left", "none"
    table.add_column("point", overflow="fold")
    for name in shown:
        heading = metric_name(run.metric) if name == "quality" else name
        # Measured here because rich takes a figure's longest word for the least that it needs.
        needed = max(map(len, (heading, *(cell(name, point) for point in summary.points))))
        table.add_column(heading, justify="right", no_wrap=True, min_width=needed)
    for point in summary.points:
        table.add_row(Text(point.point), *(Text(cell(name, point)) for name in shown))
    return table


def print_table(console: Console, summary: Summary, run: RunRecord) -> None:
    """Print the table, as several where the terminal is too narrow for one, what it rests on, and the warnings."""
    for columns in _fitting(console, summary, run):
        console.print(render(summary, run, columns, note=False))
        console.print()
    print_lines(console, [caption_of(summary, run), *(f"warning: {warning}" for warning in summary.warnings)])


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print remarks: broken between words on a terminal, whole where a program reads them."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def _fitting(console: Console, summary: Summary, run: RunRecord) -> list[tuple[str, ...]]:
    """The columns of each table: as many as fit beside the labels, which are folded only where they are long."""
    unbounded = console.options.update(width=10_000)

    def measured(columns: Sequence[str]) -> Measurement:
        return console.measure(render(summary, run, tuple(columns), note=False), options=unbounded)

    folded = max((len(point.point) for point in summary.points), default=0) > console.width // _LABEL_SHARE

    def too_wide(columns: Sequence[str]) -> bool:
        needed = measured(columns)
        return (needed.minimum if folded else needed.maximum) > console.width

    tables: list[tuple[str, ...]] = []
    taken: list[str] = []
    for column in told_columns(summary):
        if taken and too_wide([*taken, column]):
            tables.append(tuple(taken))
            taken = []
        taken.append(column)
    return [*tables, tuple(taken)]


def caption_of(summary: Summary, run: RunRecord) -> str:
    """Texts, data, split, pair, device, dtype, threads and memory; what the interval is; the scores' signatures."""
    from rich.filesize import decimal

    texts = max((point.texts for point in summary.points), default=0)
    counted = _counted(texts, "text") if texts == run.texts else f"{texts} of {_counted(run.texts, 'text')}"
    parts = [counted + f" of {run.data_label} ({run.split})", f"pair {run.pair_label}"]
    device, dtype = run.environment.get("device"), run.configuration.get("dtype")
    parts += [str(value) for value in (device, run.environment.get("gpu_name"), dtype) if value is not None]
    threads, draws = run.environment.get("threads"), run.configuration.get("draws", 1)
    if threads is not None:
        parts.append(_counted(threads, "thread"))
    if draws > 1:
        parts.append(f"{draws} draws per text")
    peaks = [point.peak_memory_bytes for point in summary.points if point.peak_memory_bytes is not None]
    if peaks:
        parts.append(f"peak memory {decimal(max(peaks))}")
    meaning = ["vs vanilla and speed-ups: paired on the same texts, [95 % interval]"]
    if any(point.quality_spread is not None for point in summary.points):
        meaning.append("quality: mean ± standard deviation over draws")
    return "\n".join([", ".join(parts), *meaning, *signatures_of(summary.points)])


def signatures_of(points: Sequence[PointSummary]) -> list[str]:
    """How the points' scores were made, each signature once."""
    scores = [score for point in points for score in (point.quality, point.chrf) if score is not None]
    return sorted({_signature(score) for score in scores})


def _signature(score: Score) -> str:
    # sacreBLEU's do not say of which score they are.
    named = score.signature.startswith(score.metric)
    return score.signature if named else f"{metric_name(score.metric)}: {score.signature}"


def to_json(summary: Summary, run: RunRecord) -> dict[str, Any]:
    """The run (without its list of text ids), its points' figures and the warnings, as strict JSON values.

    NaN, an interval that one text cannot have, becomes null; an infinite setting becomes the string "inf" or "-inf".
    """
    about = asdict(run)
    del about["texts_expected"]
    return {
        "run": strict_values(about),
        "points": [strict_values(asdict(point)) for point in summary.points],
        "warnings": list(summary.warnings),
    }


def strict_values(value: Any) -> Any:
    """JSON values that every reader takes: NaN becomes null, an infinity the string "inf" or "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {key: strict_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict_values(item) for item in value]
    return value


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
