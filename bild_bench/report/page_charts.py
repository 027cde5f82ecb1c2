"""The plots of the page: each for a desk and for a phone, and those of points in every view, with the points once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bild_bench.report import charts
from bild_bench.report.chart_axes import NARROW, WIDE, Size
from bild_bench.report.chart_rows import DIFFERENCE, View
from bild_bench.report.chart_theme import themed
from bild_bench.report.collect import Group

Spec = dict[str, Any]
Draw = Callable[[Group, View, Size], Spec | None]


def page_charts(group: Group) -> dict[str, Any]:
    """The specifications.

    Returns:
        front, oracle (None without one): see `_in_views`. heatmaps: {wide, narrow}; None without a grid of thresholds.
    """
    maps = charts.heatmaps(group), charts.heatmaps(group, narrow=True)
    drawn = [
        None if spec is None else themed(spec, narrow=narrow) for spec, narrow in zip(maps, (False, True), strict=True)
    ]
    return {
        "front": _in_views(group, charts.pareto, "decoding speed-up"),
        "oracle": _in_views(group, charts.oracle, "tokens replaced"),
        "heatmaps": None if drawn[0] is None else dict(zip(("wide", "narrow"), drawn, strict=True)),
    }


def _in_views(group: Group, draw: Draw, against: str) -> Spec | None:
    """rows: label -> figures. views: the one to begin with first, each with name, title, and wide and narrow
    {spec, places}; a specification has no data of its own but the rows of `places`: label -> where its name stands."""
    rows: dict[str, Any] = {}
    views = []
    # Paired bars say more of a difference than two scores with their own bars, so they come first.
    for view in sorted(charts.views(group), key=lambda view: view is not DIFFERENCE):
        title = view.title(group.run.metric)
        drawn: Spec = {"name": view.field, "title": "Difference from vanilla, paired" if view is DIFFERENCE else title}
        for name, size in (("wide", WIDE), ("narrow", NARROW)):
            spec = draw(group, view, size)
            if spec is None:
                return None
            values = spec.pop("data")["values"]
            rows |= {row["label"]: {key: value for key, value in row.items() if key != "place"} for row in values}
            # On the page the section has the group's title; a plot that is saved from it needs both.
            below = [*size.lines([group.title]), *spec["title"]["subtitle"]]
            spec["title"] = {"text": size.title(f"{title} against {against}"), "subtitle": below}
            places = {row["label"]: row["place"] for row in values}
            drawn[name] = {"spec": themed(spec, narrow=size.narrow), "places": places}
        views.append(drawn)
    return {"rows": rows, "views": views}
