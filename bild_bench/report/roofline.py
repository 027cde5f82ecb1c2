"""The roofline plot (Williams, Waterman and Patterson 2009): FLOP/s reached against FLOPs per byte, below ceilings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bild_bench.report.chart_layers import Spec
from bild_bench.report.chart_rows import Range

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_SIZE = (620, 380)
# Okabe and Ito's colours, told apart by the colour-blind; the shape says the part of the model.
_COLOURS = {"large": "#0072B2", "small": "#D55E00"}
_SHAPES = {"decoder": "circle", "encoder": "square"}
_MUTED, _MEMORY = "#8A8F98", "memory"
# How far the axes go beyond what they show, and about how large letters are, in pixels.
_REACH, _LETTER, _LINE = 1.6, 6, 14


def roofline(profile: Mapping[str, Any]) -> Spec:
    """The specification of one profile's plot.

    Args:
        profile: with rates; see `report.profile_table.with_rates`.
    """
    marks = [mark for mark in profile["marks"] if mark["intensity"] is not None and mark["achieved"] is not None]
    ceilings = profile["ceilings"]
    x_range = _span([mark["intensity"] for mark in marks])
    roofs = _roofs(ceilings, x_range)
    y_range = _span([mark["achieved"] for mark in marks] + [row["achieved"] for row in roofs])
    rows = [{**mark, "tooltip": _tooltip(mark)} for mark in marks]
    return {
        "$schema": _SCHEMA,
        "title": {"text": "Roofline: what calls reach, and what they could", "subtitle": _subtitle(profile)},
        "width": _SIZE[0],
        "height": _SIZE[1],
        "data": {"values": rows},
        "encoding": {
            "x": _axis("intensity", "FLOPs per byte", x_range, "~g"),
            "y": _axis("achieved", "FLOP/s", y_range, "~s"),
        },
        "layer": [_roof_lines(roofs), _marks(), *_labels(rows, x_range, y_range)],
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }


def _subtitle(profile: Mapping[str, Any]) -> list[str]:
    ceilings, environment = profile["ceilings"], profile["environment"]
    resident = ", ".join(f"{role} {_gigas(bandwidth)}B/s" for role, bandwidth in ceilings["resident"].items())
    return [
        f"pair {profile['pair']['label']} on {environment['gpu_name'] or environment['cpu_model']}, "
        f"{profile['dtype']}, threads: {environment['threads']}",
        f"solid: {_gigas(ceilings['bandwidth'])}B/s from memory and {_gigas(ceilings['flops'])}FLOP/s",
        f"dashed: reading an array as large as a decoder's weights, which caches may hold ({resident})",
    ]


def _roofs(ceilings: Mapping[str, Any], span: Range) -> list[dict[str, Any]]:
    """Each roof as a line's points: both ends, and the ridge where it lies between them."""
    rows, peak = [], ceilings["flops"]
    for roof, bandwidth in {_MEMORY: ceilings["bandwidth"], **ceilings["resident"]}.items():
        ridge = peak / bandwidth
        ends = [span[0], *([ridge] if span[0] < ridge < span[1] else []), span[1]]
        rows += [{"roof": roof, "intensity": x, "achieved": min(peak, x * bandwidth)} for x in ends]
    return rows


def _roof_lines(roofs: Sequence[Mapping[str, Any]]) -> Spec:
    solid = {"test": f"datum.roof == '{_MEMORY}'", "value": [1, 0]}
    colours = {**_COLOURS, _MEMORY: _MUTED}
    return {
        "data": {"values": list(roofs)},
        "mark": {"type": "line", "clip": True, "strokeWidth": 1.6},
        "encoding": {
            "color": {"field": "roof", "type": "nominal", "scale": _scale(colours), "legend": None},
            "strokeDash": {"condition": solid, "value": [4, 4]},
            "order": {"field": "intensity", "type": "quantitative"},
        },
    }


def _marks() -> Spec:
    legend = {"title": None, "orient": "top", "direction": "horizontal", "offset": 6}
    return {
        "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
        "encoding": {
            "color": {"field": "model", "type": "nominal", "scale": _scale(_COLOURS), "legend": legend},
            "shape": {"field": "part", "type": "nominal", "scale": _scale(_SHAPES), "legend": legend},
            "tooltip": {"field": "tooltip"},
        },
    }


def _labels(rows: Sequence[Mapping[str, Any]], x_range: Range, y_range: Range) -> list[Spec]:
    """Names beside the marks, on the side with room, moved down where one would cover another."""
    placed: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: -row["achieved"]):
        x, y = _pixel(row["intensity"], x_range, _SIZE[0]), _pixel(row["achieved"], y_range, _SIZE[1])
        width, left = _LETTER * len(row["label"]), x > _SIZE[0] / 2
        start = x - width if left else x
        while any(abs(y - one["y"]) < _LINE and _overlap(start, width, one) for one in placed):
            y -= 1
        placed.append({"label": row["label"], "x": x, "y": y, "left": left, "start": start, "width": width})
    return [_text(placed, left, style) for left in (False, True) for style in ("halo", None)]


def _overlap(start: float, width: float, other: Mapping[str, Any]) -> bool:
    return bool(start < other["start"] + other["width"] and other["start"] < start + width)


def _text(placed: Sequence[Mapping[str, Any]], left: bool, style: str | None) -> Spec:
    values = [{"label": one["label"], "x": one["x"], "y": _SIZE[1] - one["y"]} for one in placed if one["left"] == left]
    side = {"align": "right" if left else "left", "dx": -10 if left else 10, "baseline": "middle", "fontSize": 11}
    return {
        "data": {"values": values},
        "mark": {"type": "text", **side, **({} if style is None else {"style": style})},
        "encoding": {
            **{name: {"field": name, "type": "quantitative", "scale": None} for name in ("x", "y")},
            "text": {"field": "label"},
        },
    }


def _scale(values: Mapping[str, str]) -> Spec:
    return {"domain": list(values), "range": list(values.values())}


def _axis(name: str, title: str, span: Range, form: str) -> Spec:
    scale = {"type": "log", "domain": list(span), "nice": False}
    return {"field": name, "type": "quantitative", "scale": scale, "axis": {"title": title, "format": form}}


def _span(values: Sequence[float]) -> Range:
    return min(values) / _REACH, max(values) * _REACH


def _pixel(value: float, span: Range, size: int) -> float:
    return size * math.log(value / span[0]) / math.log(span[1] / span[0])


def _tooltip(mark: Mapping[str, Any]) -> str:
    return f"{mark['label']}: {mark['intensity']:.2f} FLOPs per byte, {_gigas(mark['achieved'])}FLOP/s"


def _gigas(value: float) -> str:
    return f"{value / 1e9:.3g} G"
