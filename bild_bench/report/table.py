"""A summary as a table for people and as JSON for programs.

No figure is told by colour alone, and an unknown figure is "-", never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bild_bench.measure.intervals import Estimate
from bild_bench.report.paper import metric_name
from bild_bench.report.summary import PointSummary, Summary
from bild_bench.schema import RunRecord

if TYPE_CHECKING:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

UNKNOWN = "-"

# A narrow terminal gets these as two tables or more, a wide one as one.
SPEED = ("quality", "total speed-up", "decoding speed-up", "ms/token")
TOKENS = ("fallback %", "low-conf %", "rollback %", "by S %", "by L %")
# Only where some point leaves the decoder early.
EXIT = "exit layer"


_CELLS: dict[str, Callable[[PointSummary], str]] = {
    "quality": lambda point: _quality(point),
    "total speed-up": lambda point: _times(point.speedup_total),
    "decoding speed-up": lambda point: _times(point.speedup_decoding),
    "ms/token": lambda point: _figure(point.ms_per_token, 2),
    "fallback %": lambda point: _figure(point.fallback_pct, 1),
    "low-conf %": lambda point: _figure(point.low_confidence_pct, 1),
    "rollback %": lambda point: _figure(point.rollback_pct, 1),
    "by S %": lambda point: _figure(point.small_share_pct, 1),
    "by L %": lambda point: _figure(point.large_share_pct, 1),
    EXIT: lambda point: _figure(point.average_exit_layer, 2),
}


def render(summary: Summary, run: RunRecord, columns: tuple[str, ...] | None = None, *, note: bool = True) -> Table:
    """One row per point, with columns out of SPEED, TOKENS and EXIT; all that apply where None are given.

    Speed-ups read "1.43x [1.38, 1.49]": the paired figure, total or decoding only, and its 95 % interval.

    Args:
        note: say below the table what was measured, on what, and how the quality was scored.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = SPEED + token_columns(summary) if columns is None else columns
    # Text and not str throughout: rich takes square brackets in a str for markup.
    caption = Text(caption_of(summary, run)) if note else None
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.caption, table.caption_justify, table.caption_style = caption, "left", "none"
    table.add_column("point", overflow="fold")
    for name in shown:
        heading = metric_name(run.metric) if name == "quality" else name
        # Measured here because rich takes a figure's longest word for the least that it needs.
        needed = max(map(len, (heading, *(_CELLS[name](point) for point in summary.points))))
        table.add_column(heading, justify="right", no_wrap=True, min_width=needed)
    for point in summary.points:
        table.add_row(Text(point.point), *(Text(_CELLS[name](point)) for name in shown))
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
    """Columns a table, so that the label keeps its place beside them and is folded between words at most."""
    unbounded = console.options.update(width=10_000)

    def measured(columns: Sequence[str]) -> Measurement:
        return console.measure(render(summary, run, tuple(columns), note=False), options=unbounded)

    whole = SPEED + token_columns(summary)
    if measured(whole).maximum <= console.width:
        return [whole]
    tables = []
    for group in (SPEED, token_columns(summary)):
        taken: list[str] = []
        for column in group:
            if taken and measured([*taken, column]).minimum > console.width:
                tables.append(tuple(taken))
                taken = []
            taken.append(column)
        tables.append(tuple(taken))
    return tables


def token_columns(summary: Summary) -> tuple[str, ...]:
    """Where tokens came from; the layer they left at too where some point tells."""
    told = any(point.average_exit_layer is not None for point in summary.points)
    return (*TOKENS, EXIT) if told else TOKENS


def caption_of(summary: Summary, run: RunRecord) -> str:
    """Texts, data label, split, pair, device, dtype and threads; what the interval is; the scores' signature."""
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
    signatures = sorted({point.quality.signature for point in summary.points if point.quality is not None})
    meaning = ["speed-ups: paired with the baseline, total and decoding only, [95 % interval]"]
    if any(point.quality_spread is not None for point in summary.points):
        meaning.append("quality: mean ± standard deviation over draws")
    return "\n".join([", ".join(parts), *meaning, *signatures])


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


def _figure(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def _quality(point: PointSummary) -> str:
    if point.quality is None or point.quality_spread is None:
        return _figure(None if point.quality is None else point.quality.value, 2)
    return f"{point.quality.value:.1f} ± {point.quality_spread:.1f}"


def _times(estimate: Estimate | None) -> str:
    if estimate is None:
        return UNKNOWN
    # No interval to show: NaN (one text), or no width (the baseline against itself).
    if not estimate.low < estimate.high:
        return f"{estimate.value:.2f}x"
    return f"{estimate.value:.2f}x [{estimate.low:.2f}, {estimate.high:.2f}]"
