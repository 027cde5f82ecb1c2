"""Quality, speed-up and rollback % over the two thresholds, as Vega-Lite v5 specifications."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from bild_bench.report.collect import Entry, Group
from bild_bench.report.paper import metric_name

Spec = dict[str, Any]
Cells = dict[tuple[float, float], Entry]
Kind = tuple[tuple[str, str], ...]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_THRESHOLDS = ("alpha_fb", "alpha_rb")
_CELL = 46
# Blues of one hue, light to dark: readable without colour vision.
_RAMP = ["#EAF2F9", "#BAD6EB", "#7DB3D8", "#3787C0", "#0B559F"]

_FIGURES: tuple[tuple[str, str, Callable[[Entry], float | None]], ...] = (
    ("quality", ".1f", lambda entry: entry.quality),
    ("decoding speed-up", ".2f", lambda entry: entry.speedup),
    ("rollback %", ".1f", lambda entry: entry.summary.rollback_pct),
)


def heatmaps(group: Group, *, narrow: bool = False) -> Spec | None:
    """Three maps for each pair, method and set of other settings; None where no set has a grid of 2 x 2.

    They stand side by side; below each other where `narrow`.

    Where several experiments of the group have the same point the newest is shown.
    """
    grids = _grids(group)
    if not grids:
        return None
    rows = [_maps(name, cells, group, narrow) for name, cells in zip(_names(list(grids)), grids.values(), strict=True)]
    return {"$schema": _SCHEMA, "vconcat": rows, "spacing": 36, "resolve": {"scale": {"color": "independent"}}}


def _grids(group: Group) -> dict[Kind, Cells]:
    grids: dict[Kind, Cells] = {}
    for entry in group.entries:
        if entry.shown and all(name in entry.settings for name in _THRESHOLDS):
            fb, rb = (float(entry.settings[name]) for name in _THRESHOLDS)
            others = [(name, str(value)) for name, value in entry.settings.items() if name not in _THRESHOLDS]
            kind = (("method", entry.summary.method), ("pair", entry.member.run.pair_label), *others)
            grids.setdefault(kind, {})[fb, rb] = entry
    return {kind: cells for kind, cells in grids.items() if _is_grid(cells)}


def _is_grid(cells: Cells) -> bool:
    return all(len({key[place] for key in cells}) > 1 for place in (0, 1))


def _names(kinds: list[Kind]) -> list[str]:
    """The method, and of the rest only what tells the grids apart."""
    shared = set(kinds[0]).intersection(*kinds)
    names = []
    for kind in kinds:
        told = [f"{name.replace('_', ' ')} {value}" for name, value in kind[1:] if (name, value) not in shared]
        names.append(", ".join([kind[0][1], *told]))
    return names


def _maps(name: str, cells: Cells, group: Group, narrow: bool) -> Spec:
    figures = [(metric_name(group.run.metric), ".1f", _FIGURES[0][2]), *_FIGURES[1:]]
    return {
        "title": {"text": name, "fontSize": 13},
        "vconcat" if narrow else "hconcat": [_map(title, pattern, cells, read) for title, pattern, read in figures],
        "spacing": 34,
        "resolve": {"scale": {"color": "independent"}},
    }


def _map(title: str, pattern: str, cells: Cells, read: Callable[[Entry], float | None]) -> Spec:
    known = {key: value for key, value in ((key, read(entry)) for key, entry in cells.items()) if value is not None}
    low, high = (min(known.values()), max(known.values())) if known else (0.0, 1.0)
    values = [
        {
            "label": cells[fb, rb].label,
            "alpha_fb": _number(fb),
            "alpha_rb": _number(rb),
            "figure": value,
            "on_dark": high > low and (value - low) / (high - low) > 0.66,
        }
        for (fb, rb), value in known.items()
    ]
    axis = {"grid": False, "domain": False, "ticks": False, "labelAngle": 0}
    across = {"type": "ordinal", "scale": {"type": "band", "paddingInner": 0.06}}
    x = {**across, "field": "alpha_fb", "sort": _sorted(cells, 0), "axis": {**axis, "title": "α fallback"}}
    y = {**across, "field": "alpha_rb", "sort": _sorted(cells, 1)[::-1], "axis": {**axis, "title": "α rollback"}}
    scale = {"domain": [low, high if high > low else low + 1], "range": _RAMP}
    colour = {"field": "figure", "type": "quantitative", "scale": scale, "legend": None}
    white = {"condition": {"test": "datum.on_dark", "value": "#FFFFFF"}, "value": "#16324A"}
    tooltip = [{"field": "label", "title": "point"}, {"field": "figure", "title": title, "format": pattern}]
    text = {"field": "figure", "type": "quantitative", "format": pattern}
    return {
        "title": {"text": title, "fontSize": 13, "fontWeight": 500, "anchor": "middle", "offset": 8},
        "width": {"step": _CELL},
        "height": {"step": _CELL},
        "data": {"values": values},
        "encoding": {"x": x, "y": y, "tooltip": tooltip},
        "layer": [
            {"mark": {"type": "rect", "cornerRadius": 3}, "encoding": {"color": colour}},
            {"mark": {"type": "text", "fontSize": 12}, "encoding": {"text": text, "color": white}},
        ],
    }


def _sorted(cells: Cells, place: int) -> Sequence[str]:
    return [_number(value) for value in sorted({key[place] for key in cells})]


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:g}"
