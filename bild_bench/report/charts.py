"""Plots as Vega-Lite v5 specifications: plain dicts without a theme; `chart_theme` adds one and draws files."""

from __future__ import annotations

from collections.abc import Sequence

from bild_bench.report import chart_labels
from bild_bench.report.chart_axes import FILE, Size, axis, known, leaving, reached, span, with_bars
from bild_bench.report.chart_layers import (
    Spec,
    front_line,
    intervals,
    marks,
    paper_marks,
    parity_line,
    reference_lines,
    references,
    smalls,
)
from bild_bench.report.chart_oracle import oracle
from bild_bench.report.chart_rows import DIFFERENCE, SCORE, Range, Row, View, inside, row_of
from bild_bench.report.chart_theme import png, svg, themed
from bild_bench.report.collect import Entry, Group
from bild_bench.report.heatmaps import heatmaps
from bild_bench.report.paper import NOT_STATED, PaperPoint, metric_name, plotted

__all__ = ["all_plots", "heatmaps", "metric_name", "oracle", "pareto", "png", "svg", "themed", "views"]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
Points = list[tuple[Entry, Row]]


def all_plots(group: Group) -> dict[str, Spec]:
    """Name -> specification of every plot that the group has."""
    plots: dict[str, Spec | None] = {}
    for view in views(group):
        ending = "" if view is SCORE else f"-{view.field}"
        plots[f"pareto{ending}"] = pareto(group, view)
        plots[f"oracle{ending}"] = oracle(group, view)
    plots["heatmaps"] = heatmaps(group)
    return {name: spec for name, spec in plots.items() if spec is not None}


def views(group: Group) -> tuple[View, ...]:
    """The score, and the difference from vanilla where some point has one."""
    others = (entry for entry in group.entries if entry.shown and entry.summary.role != "baseline")
    return (SCORE, DIFFERENCE) if any(row_of(entry)["difference"] is not None for entry in others) else (SCORE,)


def pareto(group: Group, view: View = SCORE, size: Size = FILE) -> Spec:
    """Quality against decoding speed-up, with 95 % intervals, the strict front, vanilla's and small's lines.

    The paper's figures are added as hollow marks where the texts are the data set's own and the view is their score.
    Every mark's datum has "label", "method" and "front"; the legend of methods can be clicked.
    """
    points = [(entry, row_of(entry)) for entry in group.entries if entry.shown]
    points = [(entry, row) for entry, row in points if row[view.field] is not None]
    published = _published(group) if view is SCORE else ()
    x_range, y_range = _ranges(points, published, view)
    held = [row for _, row in points if _within(row, x_range, y_range, view)]
    lines = references(points, y_range, view)
    foreign = [
        {"speedup": point.speedup, view.field: point.quality, "front": False, "named": False}
        for point in published
        if point.speedup is not None
    ]
    frame = chart_labels.Frame(x_range, y_range, (size.width, size.height), y_field=view.field)
    placed, ends = chart_labels.places([*held, *foreign], lines, frame)
    rows = [{**row, "place": placed.get(row["label"], "")} for row in held]
    lines = [{**line, "end": ends.get(line["name"], "")} for line in lines]
    layers = [parity_line(), reference_lines(lines)]
    layers += [
        intervals("x", "speedup", rows),
        intervals("y", view.field, rows),
        front_line(),
        marks(rows, size.columns),
    ]
    layers += chart_labels.layers(rows)
    if published:
        layers.append(paper_marks(published))
    times = "format(datum.value, '.2~f') + 'x'"
    return {
        "$schema": _SCHEMA,
        "title": {
            "text": size.title(group.title),
            "subtitle": size.lines(_subtitle(group, points, (x_range, y_range), published, view)),
        },
        "width": size.width,
        "height": size.height,
        "data": {"values": rows},
        "encoding": {
            "x": axis("speedup", x_range, size.ticks[0], "decoding speed-up over vanilla", times),
            "y": axis(view.field, y_range, size.ticks[1], view.title(group.run.metric)),
        },
        "layer": layers,
        # The bars have no legend of their own; a shared scale would take the marks' legend away with theirs.
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }


def _published(group: Group) -> tuple[PaperPoint, ...]:
    """A sample of our own sentences is another data set: its plot has none."""
    run = group.run
    if run.data_label != run.task:
        return ()
    found = plotted(run.task, sampling=group.key["sampling"] != "none")
    # CALM's are of another large model, and far from the rest: for plots that have the method.
    there = {entry.summary.method for entry in group.entries}
    return tuple(point for point in found if point.method != "calm" or "calm" in there)


def _ranges(points: Points, published: Sequence[PaperPoint], view: View) -> tuple[Range, Range]:
    """What the axes must hold: points and published marks with their intervals, and references that are near."""
    speeds: list[float | None] = [1.0, *(point.speedup for point in published)]
    scores: list[float | None] = [row[view.field] for _, row in points if row["baseline"]]
    scores += [point.quality for point in published]
    compared = [row for _, row in points if not row["baseline"] and row["method"] != "small"]
    x_range = span(known([*speeds, *(row["speedup"] for row in compared)]))
    y_range = span(known([*scores, *(row[view.field] for row in compared)]) or [0.0])
    x_range, y_range = with_bars(x_range, "speedup", compared), with_bars(y_range, view.field, compared)
    for row in (row for _, row in points if row["method"] == "small"):
        y_range = reached(y_range, row[view.field])
        x_range = reached(x_range, row["speedup"])
    return x_range, y_range


def _within(row: Row, x_range: Range, y_range: Range, view: View) -> bool:
    return inside(row["speedup"], x_range) and inside(row[view.field], y_range)


def _subtitle(
    group: Group, points: Points, ranges: tuple[Range, Range], published: Sequence[PaperPoint], view: View
) -> list[str]:
    lines = [f"{metric_name(group.run.metric)}: {group.key['signature']}"]
    bars = [row for _, row in points if not row["baseline"] and row["method"] != "small"]
    cut = leaving(ranges[0], "speedup", bars) or leaving(ranges[1], view.field, bars)
    lines.append(view.bars_say(cut))
    lines.append("line and large marks: the strict Pareto front on these texts")
    for entry, row in smalls(points):
        if not _within(row, *ranges, view):
            where = f"{view.written(row[view.field])} at {row['speedup']:.2f}x"
            lines.append(f"beyond the plot: {entry.label} alone, {where}")
    if published:
        metric, split = published[0].metric, published[0].split
        where = "split not stated" if split == NOT_STATED else f"split {split}"
        lines.append(f"hollow diamonds: the paper's published points ({metric}, {where}; {published[0].hardware})")
    return lines
