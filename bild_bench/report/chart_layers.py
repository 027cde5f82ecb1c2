"""The layers of the plots of points.

Colours are Okabe and Ito's (Color Universal Design), told apart by the colour-blind; shapes say the same as colours.
"""

from __future__ import annotations

from typing import Any

from bild_bench.report import chart_labels
from bild_bench.report.chart_rows import Range, Row, View, inside
from bild_bench.report.collect import Entry
from bild_bench.report.paper import PaperPoint

Spec = dict[str, Any]

# A cross on its side; of the shapes that the library knows the rest are too much alike, or slivers.
_X = "M-1,-.55L-.55,-1L0,-.45L.55,-1L1,-.55L.45,0L1,.55L.55,1L0,.45L-.55,1L-1,.55L-.45,0Z"

# Method -> colour and shape; others share the last.
_STYLES = {
    "bild": ("#0072B2", "circle"),
    "speculative": ("#D55E00", "square"),
    "calm": ("#009E73", "triangle-up"),
    "bild-early-exit": ("#CC79A7", "diamond"),
    "small": ("#8A8F98", "triangle-down"),
    "vanilla": ("#6B7280", "cross"),
    "oracle": ("#E69F00", _X),
}
_OTHER = ("#56B4E9", "triangle-right")
_MUTED = "#8A8F98"
# What the page's style sheet looks for, to set them in its own colours.
INK, GROUND = "#1C2127", "#FFFFFF"
# More lines across a plot than this are no help.
_MOST_SMALLS = 4
_TOOLTIP = (("label", "point"), ("quality_text", "quality"), ("difference_text", "vs vanilla"))
_RATES = (("total_speedup", "total", ".2f"), ("fallback_pct", "fallback %", ".1f"))
_MORE_RATES = (("rollback_pct", "rollback %", ".1f"), ("share", "large %", ".1f"))


def parity_line() -> Spec:
    """Vanilla's speed."""
    return {
        "data": {"values": [{"speedup": 1}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": _MUTED, "opacity": 0.8},
        "encoding": {"y": None},
    }


def references(points: list[tuple[Entry, Row]], y_range: Range, view: View) -> list[Row]:
    """Vanilla's and each small model's quality, as data of lines: "name" and the view's field."""
    baselines = [(entry, row) for entry, row in points if row["baseline"]][:1]
    lines = baselines + smalls(points)
    return [
        {"name": f"{entry.label} {_named(row, view)}", view.field: row[view.field]}
        for entry, row in lines
        if row[view.field] is not None and inside(row[view.field], y_range)
    ]


def _named(row: Row, view: View) -> str:
    # Vanilla's difference from itself is no news, its score is.
    return f"{row['quality']:.2f}" if row["baseline"] else view.written(row[view.field])


def smalls(points: list[tuple[Entry, Row]]) -> list[tuple[Entry, Row]]:
    """Each small model alone, once: a hundred experiments with the same pair have one line."""
    found: dict[tuple[str, str], tuple[Entry, Row]] = {}
    for entry, row in points:
        if entry.summary.method == "small":
            found.setdefault((entry.summary.point, entry.member.run.pair_label), (entry, row))
    return list(found.values())[:_MOST_SMALLS]


def reference_lines(lines: list[Row]) -> Spec:
    """The references as dashed lines, named at the end that each line says."""
    rule = {"mark": {"type": "rule", "strokeDash": [4, 4], "color": _MUTED, "opacity": 0.8}, "encoding": {"x": None}}
    return {"data": {"values": lines}, "layer": [rule, *chart_labels.line_layers(lines)]}


def intervals(channel: str, field: str, rows: list[Row]) -> Spec:
    """A bar through every point but the baselines, from the field's "_low" to its "_high"."""
    # The bars of a hundred points would hide the points.
    faint = round(min(0.3, 8 / max(1, len(rows))), 3)
    return {
        "transform": [{"filter": f"!datum.baseline && isValid(datum.{field}_low) && isValid(datum.{field}_high)"}],
        "mark": {"type": "rule", "strokeWidth": 1.3, "clip": True},
        "encoding": {
            channel: {"field": f"{field}_low", "type": "quantitative"},
            f"{channel}2": {"field": f"{field}_high"},
            "color": {"field": "method", "type": "nominal", "scale": _styles(rows, 0), "legend": None},
            "opacity": {"condition": {"test": "datum.front", "value": 0.65}, "value": faint},
        },
    }


def front_line() -> Spec:
    """Steps: at a wanted speed-up one gets the next faster point's quality, not something between two points."""
    return {
        "transform": [{"filter": "datum.front"}],
        "mark": {"type": "line", "interpolate": "step-before", "style": "front"},
        "encoding": {"order": {"field": "speedup"}},
    }


def marks(rows: list[Row], columns: int) -> Spec:
    """Every point; those on the front are large and outlined. The legend has this many columns."""
    legend = {"title": None, "orient": "top", "direction": "horizontal", "offset": 6, "symbolOpacity": 1}
    legend |= {"symbolStrokeWidth": 0, "columns": columns, "columnPadding": 14}
    tooltip = [{"field": name, "title": title} for name, title in (*_TOOLTIP, ("speedup_text", "decoding"))]
    rates = (*_RATES, *_MORE_RATES)
    sizes = [{"test": "datum.front", "value": 150}, {"test": "datum.baseline", "value": 120}]
    tooltip += [{"field": name, "title": title, "format": pattern} for name, title, pattern in rates]
    return {
        "params": [{"name": "pick", "select": {"type": "point", "fields": ["method"]}, "bind": "legend"}],
        "mark": {"type": "point", "filled": True, "clip": True},
        "encoding": {
            "color": {"field": "method", "type": "nominal", "scale": _styles(rows, 0), "legend": legend},
            "shape": {"field": "method", "type": "nominal", "scale": _styles(rows, 1), "legend": legend},
            "size": {"condition": sizes, "value": 75},
            "stroke": {"condition": {"test": "datum.front", "value": INK}, "value": GROUND},
            "strokeWidth": {"condition": {"test": "datum.front", "value": 1.8}, "value": 0.7},
            "opacity": {"condition": {"param": "pick", "value": 1}, "value": 0.08},
            "tooltip": tooltip,
        },
    }


def paper_marks(published: tuple[PaperPoint, ...]) -> Spec:
    """The paper's figures, hollow."""
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


def _styles(rows: list[Row], part: int) -> Spec:
    """The scale of colours (part 0) or shapes (part 1) over the methods on the plot."""
    there = {row["method"] for row in rows}
    methods = [method for method in _STYLES if method in there] + sorted(there - _STYLES.keys())
    return {"domain": methods, "range": [_STYLES.get(method, _OTHER)[part] for method in methods]}
