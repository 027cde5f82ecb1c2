"""Where names stand on the Pareto plot, here 620 x 380 pixels: 0.1x is 62 across, a point of quality 34.5 down."""

from __future__ import annotations

from typing import Any

from bild_bench.report.chart_labels import Frame, places

FRAME = Frame((1.0, 2.0), (30.0, 41.0), (620, 380))


def _named(label: str, speedup: float, quality: float, short: str = "fb=0.5 rb=2") -> dict[str, Any]:
    """A row on the front that is to be named."""
    return {
        "label": label,
        "short": short,
        "front": True,
        "named": True,
        "speedup": speedup,
        "quality": quality,
    }


def test_names_of_close_points_do_not_cover_each_other() -> None:
    close = [(1.50, 40.0), (1.51, 39.9), (1.52, 39.8), (1.53, 39.7), (1.54, 39.6), (1.55, 39.5)]
    rows = [_named(f"p{n}", speed, quality) for n, (speed, quality) in enumerate(close)]

    crowded, _ = places(rows, [], FRAME)
    roomy, _ = places(rows, [], Frame((1.49, 1.56), (39.4, 40.1), (6200, 3800)))

    assert 0 < len(crowded) < len(rows)
    assert roomy == {row["label"]: "above right" for row in rows}


def test_a_name_stays_inside_the_plot() -> None:
    assert places([_named("p", 2.0, 30.0)], [], FRAME)[0] == {"p": "above left"}
    too_long = _named("p", 1.5, 35.0, short="x" * 60)
    assert places([too_long], [], FRAME)[0] == {}


def test_the_name_of_a_line_and_that_of_a_point_keep_apart() -> None:
    vanilla = {"name": "vanilla 40.00", "quality": 40.0}
    # The mark is on the line, 62 pixels from the right end, where 78 are taken by the line's name.
    on_it = _named("p", 1.9, 40.0)
    # 6 pixels below the line: its name would clear the line, but not the line's name.
    below_it = _named("q", 1.8, 39.82)

    assert places([on_it], [vanilla], FRAME) == ({"p": "below left"}, {"vanilla 40.00": "left above"})
    assert places([below_it], [vanilla], FRAME) == ({"q": "below left"}, {"vanilla 40.00": "right above"})
    assert places([below_it], [], FRAME)[0] == {"q": "above right"}


def test_a_name_prefers_a_place_that_no_line_runs_through() -> None:
    # 13 pixels above the point, in the middle of the name that would stand there.
    line = {"name": "vanilla", "quality": 35.4}

    assert places([_named("p", 1.5, 35.0)], [], FRAME)[0] == {"p": "above right"}
    assert places([_named("p", 1.5, 35.0)], [line], FRAME)[0] == {"p": "below left"}
