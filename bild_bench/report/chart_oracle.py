"""The oracle's plot: how much quality a share of replaced tokens buys (the motivating figure of arXiv 2302.07863)."""

from __future__ import annotations

from bild_bench.report import chart_labels
from bild_bench.report.chart_axes import FILE, Size, axis, leaving, reached, span, with_bars
from bild_bench.report.chart_layers import Spec, intervals, marks, reference_lines, references, smalls
from bild_bench.report.chart_rows import SCORE, Row, View, row_of
from bild_bench.report.collect import Group
from bild_bench.report.paper import metric_name

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_SAYS = (
    "line: the oracle, which replaces a token of the small model where the large one finds it too unlikely",
    "other marks: how many tokens the large model chose with the other methods",
)


def oracle(group: Group, view: View = SCORE, size: Size = FILE) -> Spec | None:
    """Quality against the share of tokens that the large model chose; None without a point of the oracle.

    The oracle's points are joined by a line for each pair; other methods' stand beside them.
    """
    points = [(entry, row_of(entry)) for entry in group.entries if entry.pruned is None]
    points = [(entry, row) for entry, row in points if row[view.field] is not None]
    held = [
        # Large marks are the oracle's here: the front is of speed-ups.
        {
            **row,
            "front": row["method"] == "oracle",
            "named": row["method"] == "oracle",
            "pair": entry.member.run.pair_label,
        }
        for entry, row in points
        if row["share"] is not None and not row["baseline"] and row["method"] != "small"
    ]
    if not any(row["front"] for row in held):
        return None
    x_range = span([0.0, *(row["share"] for row in held)])
    y_range = span([row[view.field] for row in [*held, *(row for _, row in points if row["baseline"])]])
    y_range = with_bars(y_range, view.field, held)
    for _, row in smalls(points):
        y_range = reached(y_range, row[view.field])
    lines = references(points, y_range, view)
    area = (size.width, size.height)
    frame = chart_labels.Frame(x_range, y_range, area, x_field="share", y_field=view.field, straight=True)
    placed, line_ends = chart_labels.places(held, lines, frame)
    rows = [{**row, "place": placed.get(row["label"], "")} for row in held]
    lines = [{**line, "end": line_ends.get(line["name"], "")} for line in lines]
    titles = [
        f"{metric_name(group.run.metric)}: {group.key['signature']}",
        view.bars_say(leaving(y_range, view.field, held)),
        *_SAYS,
    ]
    return {
        "$schema": _SCHEMA,
        "title": {
            "text": size.title(group.title),
            "subtitle": size.lines(titles),
        },
        "width": size.width,
        "height": size.height,
        "data": {"values": rows},
        "encoding": {
            "x": axis("share", x_range, size.ticks[0], "tokens chosen by the large model, %"),
            "y": axis(view.field, y_range, size.ticks[1], view.title(group.run.metric)),
        },
        "layer": _layers(rows, lines, view, size),
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }


def _layers(rows: list[Row], lines: list[Row], view: View, size: Size) -> list[Spec]:
    joined: Spec = {
        "transform": [{"filter": "datum.front"}],
        "mark": {"type": "line", "style": "front"},
        "encoding": {"order": {"field": "share"}, "detail": {"field": "pair"}},
    }
    return [
        reference_lines(lines),
        intervals("y", view.field, rows),
        joined,
        marks(rows, size.columns),
        *chart_labels.layers(rows),
    ]
