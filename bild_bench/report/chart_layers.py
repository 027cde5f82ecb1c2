"""The layers of the Pareto plot.

Colours are Okabe and Ito's (Color Universal Design), told apart by the colour-blind; shapes say the same as colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bild_bench.report import chart_labels
from bild_bench.report.collect import Entry
from bild_bench.report.paper import PaperPoint

Spec = dict[str, Any]
Range = tuple[float, float]

# Method -> colour and shape; others share the last.
_STYLES = {
    "bild": ("#0072B2", "circle"),
    "speculative": ("#D55E00", "square"),
    "calm": ("#009E73", "triangle-up"),
    "bild-early-exit": ("#CC79A7", "diamond"),
    "small": ("#8A8F98", "triangle-down"),
    "vanilla": ("#8A8F98", "cross"),
    "oracle": ("#E69F00", "wedge"),
}
_OTHER = ("#56B4E9", "triangle-right")
_MUTED = "#8A8F98"
# More lines across a plot than this are no help.
_MOST_SMALLS = 4


def parity_line() -> Spec:
    return {
        "data": {"values": [{"speedup": 1}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": _MUTED, "opacity": 0.8},
        "encoding": {"y": None},
    }


def references(points: list[Entry], y_range: Range) -> list[dict[str, Any]]:
    """Vanilla's and each small model's quality, as data of lines: "name" and "quality"."""
    lines = [entry for entry in points if entry.summary.role == "baseline"][:1] + smalls(points)
    return [
        {"name": f"{entry.label} {entry.quality:.2f}", "quality": entry.quality}
        for entry in lines
        if entry.quality is not None and inside(entry.quality, y_range)
    ]


def smalls(points: list[Entry]) -> list[Entry]:
    """Each small model alone, once: a hundred experiments with the same pair have one line."""
    found: dict[tuple[str, str], Entry] = {}
    for entry in points:
        if entry.summary.method == "small":
            found.setdefault((entry.summary.point, entry.member.run.pair_label), entry)
    return list(found.values())[:_MOST_SMALLS]


def reference_lines(lines: list[dict[str, Any]]) -> Spec:
    """The references as dashed lines, named at the end that each line says."""
    rule = {"mark": {"type": "rule", "strokeDash": [4, 4], "color": _MUTED, "opacity": 0.8}, "encoding": {"x": None}}
    return {"data": {"values": lines}, "layer": [rule, *chart_labels.line_layers(lines)]}


def intervals(channel: str, rows: list[dict[str, Any]]) -> Spec:
    name = "speedup" if channel == "x" else "quality"
    colour = _styles(rows, 0)
    # The bars of a hundred points would hide the points.
    faint = round(min(0.13, 8 / max(1, len(rows))), 3)
    return {
        "transform": [{"filter": f"!datum.baseline && isValid(datum.{name}_low) && isValid(datum.{name}_high)"}],
        "mark": {"type": "rule", "strokeWidth": 1.3, "clip": True},
        "encoding": {
            channel: {"field": f"{name}_low", "type": "quantitative"},
            f"{channel}2": {"field": f"{name}_high"},
            "color": {"field": "method", "type": "nominal", "scale": colour, "legend": None},
            "opacity": {"condition": {"test": "datum.front", "value": 0.5}, "value": faint},
        },
    }


def front_line() -> Spec:
    """Steps: at a wanted speed-up one gets the next faster point's quality, not something between two points."""
    return {
        "transform": [{"filter": "datum.front"}],
        "mark": {"type": "line", "interpolate": "step-before", "style": "front"},
        "encoding": {"order": {"field": "speedup"}},
    }


def marks(rows: list[dict[str, Any]]) -> Spec:
    legend = {"title": None, "orient": "top", "direction": "horizontal", "offset": 6, "symbolOpacity": 1}
    picked = [
        {"test": {"and": [{"param": "pick"}, "datum.front"]}, "value": 1},
        {"test": {"param": "pick"}, "value": 0.4},
    ]
    return {
        "params": [{"name": "pick", "select": {"type": "point", "fields": ["method"]}, "bind": "legend"}],
        "mark": {"type": "point", "filled": True, "strokeWidth": 0},
        "encoding": {
            "color": {"field": "method", "type": "nominal", "scale": _styles(rows, 0), "legend": legend},
            "shape": {"field": "method", "type": "nominal", "scale": _styles(rows, 1), "legend": legend},
            "size": {"condition": {"test": "datum.front", "value": 130}, "value": 60},
            "opacity": {"condition": picked, "value": 0.05},
            "tooltip": [
                {"field": "label", "title": "point"},
                {"field": "quality_text", "title": "quality"},
                {"field": "speedup_text", "title": "decoding"},
                {"field": "total_speedup", "title": "total", "format": ".2f"},
                {"field": "fallback_pct", "title": "fallback %", "format": ".1f"},
                {"field": "rollback_pct", "title": "rollback %", "format": ".1f"},
            ],
        },
    }


def paper_marks(published: tuple[PaperPoint, ...]) -> Spec:
    rows = [
        {
            "label": f"published: {point.label}",
            "method": "published",
            "front": False,
            "quality": point.quality,
            "speedup": point.speedup,
            "metric": point.metric,
            "split": point.split,
            "hardware": point.hardware,
        }
        for point in published
    ]
    tooltip = [{"field": name} for name in ("label", "quality", "speedup", "metric", "split", "hardware")]
    return {
        "data": {"values": rows},
        "mark": {"type": "point", "shape": "diamond", "filled": False, "size": 75, "strokeWidth": 1.4, "color": _MUTED},
        "encoding": {"tooltip": tooltip},
    }


def _styles(rows: list[dict[str, Any]], part: int) -> Spec:
    """The scale of colours (part 0) or shapes (part 1) over the methods on the plot."""
    there = {row["method"] for row in rows}
    methods = [method for method in _STYLES if method in there] + sorted(there - _STYLES.keys())
    return {"domain": methods, "range": [_STYLES.get(method, _OTHER)[part] for method in methods]}


def row_of(entry: Entry) -> dict[str, Any]:
    """One point as data: figures, intervals, and ready-made texts for the tooltip."""
    summary = entry.summary
    speed, total = summary.speedup_decoding, summary.speedup_total
    row: dict[str, Any] = {
        "label": entry.label,
        "short": _short(entry),
        "method": summary.method,
        "front": entry.front,
        "baseline": summary.role == "baseline",
        # The reference lines name vanilla and the small model already.
        "named": entry.front and summary.role != "baseline" and summary.method != "small",
        "quality": entry.quality,
        "quality_low": _finite(summary.quality_low),
        "quality_high": _finite(summary.quality_high),
        "speedup": entry.speedup,
        "speedup_low": None if speed is None else _finite(speed.low),
        "speedup_high": None if speed is None else _finite(speed.high),
        "total_speedup": None if total is None else total.value,
        "fallback_pct": summary.fallback_pct,
        "rollback_pct": summary.rollback_pct,
    }
    row["quality_text"] = _with_interval(row, "quality", 2, "")
    row["speedup_text"] = _with_interval(row, "speedup", 2, "x")
    return row


def _finite(value: float | None) -> float | None:
    return value if value is not None and value == value else None


def _with_interval(row: Mapping[str, Any], name: str, digits: int, unit: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if value is None:
        return "-"
    interval = "" if low is None or high is None or low == high else f" [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{value:.{digits}f}{unit}{interval}"


def _short(entry: Entry) -> str:
    """What is written beside a mark: the settings, since colour and shape say the method."""
    name, method = entry.summary.point, entry.summary.method
    return name.removeprefix(f"{method} ")


def inside(value: float, span: Range) -> bool:
    return span[0] <= value <= span[1]
