"""Vega-Lite v5 specifications as plain dicts, without a theme: `themed` adds one, for light or dark ground."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bild_bench.report import chart_labels
from bild_bench.report.chart_layers import (
    Range,
    Spec,
    front_line,
    inside,
    intervals,
    marks,
    paper_marks,
    parity_line,
    reference_lines,
    references,
    row_of,
    smalls,
)
from bild_bench.report.collect import Entry, Group
from bild_bench.report.heatmaps import heatmaps
from bild_bench.report.paper import NOT_STATED, PaperPoint, metric_name, plotted

__all__ = ["heatmaps", "metric_name", "pareto", "png", "svg", "themed"]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_VERSION = "v5.21"
_SIZE = (620, 380)
# A reference further below the points than this share of their spread is named in words: it would flatten the plot.
_REACH = 0.5


def pareto(group: Group) -> Spec:
    """Quality against decoding speed-up, with 95 % intervals, the strict front, vanilla's and small's lines.

    The paper's figures are added as hollow marks where the texts are the data set's own. Every mark's datum has
    "label", "method" and "front"; the legend of methods can be clicked.
    """
    points = [entry for entry in group.entries if entry.shown]
    drawn = [entry for entry in points if entry.summary.method != "small" and entry.summary.role != "baseline"]
    published = _published(group)
    x_range, y_range = _ranges(drawn, published, points)
    rows = [row_of(entry) for entry in points if _within(entry, x_range, y_range)]
    lines = references(points, y_range)
    foreign = [
        {"speedup": point.speedup, "quality": point.quality, "front": False, "named": False}
        for point in published
        if point.speedup is not None
    ]
    placed, ends = chart_labels.places([*rows, *foreign], lines, chart_labels.Frame(x_range, y_range, _SIZE))
    rows = [{**row, "place": placed.get(row["label"], "")} for row in rows]
    lines = [{**line, "end": ends.get(line["name"], "")} for line in lines]
    scales = {"x": _axis_x(x_range), "y": _axis_y(group, y_range)}
    layers = [parity_line(), reference_lines(lines)]
    layers += [intervals("x", rows), intervals("y", rows), front_line(), marks(rows)]
    layers += chart_labels.layers(rows)
    if published:
        layers.append(paper_marks(published))
    return {
        "$schema": _SCHEMA,
        "title": {"text": group.title, "subtitle": _subtitle(group, points, y_range, x_range, published)},
        "width": _SIZE[0],
        "height": _SIZE[1],
        "data": {"values": rows},
        "encoding": scales,
        "layer": layers,
        # The bars have no legend of their own; a shared scale would take the marks' legend away with theirs.
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }


def themed(spec: Mapping[str, Any], *, dark: bool = False) -> Spec:
    """The specification with fonts, grid and text colours for a light or a dark ground."""
    ink, soft, grid, ground = _DARK if dark else _LIGHT
    font = "Inter, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
    axis = {"labelColor": soft, "titleColor": ink, "gridColor": grid, "tickColor": grid, "domainColor": grid}
    sizes = {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": 500, "titlePadding": 12, "labelPadding": 6}
    title = {"color": ink, "subtitleColor": soft, "fontSize": 17, "subtitleFontSize": 12, "subtitleLineHeight": 17}
    config = {
        "font": font,
        "axis": {**axis, **sizes},
        "title": {**title, "anchor": "start", "offset": 18, "fontWeight": 600, "subtitlePadding": 7, "frame": "group"},
        "legend": {"labelColor": ink, "titleColor": soft, "labelFontSize": 12, "titleFontSize": 12, "symbolSize": 90},
        "view": {"stroke": None},
        "text": {"color": ink},
        "style": {
            "front": {"color": ink, "strokeWidth": 2, "opacity": 0.8},
            "halo": {"stroke": ground, "strokeWidth": 3, "strokeJoin": "round", "color": ground},
            "reference": {"color": soft},
        },
    }
    return {**spec, "background": ground, "padding": 20, "config": config}


# Ink, softer ink, grid, ground.
_DARK = ("#E8EAED", "#A5ACB5", "#343A42", "#15181C")
_LIGHT = ("#1C2127", "#5B6470", "#E9ECEF", "#FFFFFF")


def png(spec: Mapping[str, Any], *, scale: float = 2.0) -> bytes:
    """The themed specification as a PNG picture; scale 2 is sharp in slides."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(themed(spec), vl_version=_VERSION, scale=scale))


def svg(spec: Mapping[str, Any]) -> str:
    """The themed specification as an SVG picture."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(themed(spec), vl_version=_VERSION))


def _published(group: Group) -> tuple[PaperPoint, ...]:
    """A sample of our own sentences is another data set: its plot has none."""
    run = group.run
    if run.data_label != run.task:
        return ()
    found = plotted(run.task, sampling=group.key["sampling"] != "none")
    # CALM's are of another large model, and far from the rest: for plots that have the method.
    there = {entry.summary.method for entry in group.entries}
    return tuple(point for point in found if point.method != "calm" or "calm" in there)


def _ranges(drawn: list[Entry], published: tuple[PaperPoint, ...], points: list[Entry]) -> tuple[Range, Range]:
    """What the axes must hold: points and published marks with their intervals, and references that are near."""
    speeds, scores = [1.0], [entry.quality for entry in points if entry.summary.role == "baseline"]
    speeds += [point.speedup for point in published if point.speedup is not None]
    scores += [point.quality for point in published]
    for row in (row_of(entry) for entry in drawn):
        speeds += [row["speedup"], row["speedup_low"], row["speedup_high"]]
        scores += [row["quality"], row["quality_low"], row["quality_high"]]
    known = [score for score in scores if score is not None]
    x_range = _span([speed for speed in speeds if speed is not None])
    y_range = _span(known if known else [0.0])
    for entry in points:
        if entry.quality is not None and entry.speedup is not None and entry.summary.method == "small":
            y_range = _reached(y_range, entry.quality)
            x_range = _reached(x_range, entry.speedup)
    return x_range, y_range


def _span(values: list[float]) -> Range:
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) if high > low else max(0.05 * abs(high), 0.05)
    return low - margin, high + margin


def _reached(span: Range, value: float) -> Range:
    low, high = span
    reach = _REACH * (high - low)
    return (
        (min(low, value - 0.1 * reach), max(high, value + 0.1 * reach))
        if low - reach <= value <= high + reach
        else span
    )


def _within(entry: Entry, x_range: Range, y_range: Range) -> bool:
    known = entry.quality is not None and entry.speedup is not None
    return known and inside(entry.speedup or 0.0, x_range) and inside(entry.quality or 0.0, y_range)


def _axis_x(span: Range) -> Spec:
    axis = {"labelExpr": "format(datum.value, '.2~f') + 'x'", "tickCount": 7, "title": "decoding speed-up over vanilla"}
    scale = {"domain": list(span), "zero": False, "nice": False}
    return {"field": "speedup", "type": "quantitative", "scale": scale, "axis": axis}


def _axis_y(group: Group, span: Range) -> Spec:
    scale = {"domain": list(span), "zero": False, "nice": False}
    axis = {"tickCount": 6, "title": metric_name(group.run.metric)}
    return {"field": "quality", "type": "quantitative", "scale": scale, "axis": axis}


def _subtitle(
    group: Group, points: list[Entry], y_range: Range, x_range: Range, published: tuple[PaperPoint, ...]
) -> list[str]:
    lines = [f"{metric_name(group.run.metric)}: {group.key['signature']}"]
    lines.append("bars: 95 % intervals over texts; line and large marks: the strict Pareto front on these texts")
    for entry in smalls(points):
        if not _within(entry, x_range, y_range):
            lines.append(f"beyond the plot: {entry.label} alone, {entry.quality:.2f} at {entry.speedup:.2f}x")
    if published:
        metric, split = published[0].metric, published[0].split
        where = "split not stated" if split == NOT_STATED else f"split {split}"
        lines.append(f"hollow diamonds: the paper's published points ({metric}, {where}; {published[0].hardware})")
    return lines
