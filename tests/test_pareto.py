"""The strict front against its definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bild_bench.report.pareto import strict_front

# Few different values, so that ties in one or both figures are common.
_FIGURES = st.one_of(st.integers(0, 4).map(float), st.floats(allow_nan=False))


def _dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """At least as good in both, better in one."""
    return one[0] >= other[0] and one[1] >= other[1] and one != other


@given(st.lists(st.tuples(_FIGURES, _FIGURES), max_size=12))
@example([(1.0, 1.0), (1.0, 1.0)])
@example([(0.0, 1.0), (-0.0, 1.0)])
def test_the_front_is_what_no_point_weakly_dominates_with_the_first_of_equal_points(
    points: list[tuple[float, float]],
) -> None:
    by_definition = [
        place
        for place, point in enumerate(points)
        if not any(_dominates(other, point) for other in points) and point not in points[:place]
    ]

    front = strict_front(points)

    assert sorted(front) == by_definition
    speeds = [points[place][1] for place in front]
    assert speeds == sorted(speeds)


def test_a_point_beaten_in_one_figure_and_equal_in_the_other_is_not_on_it() -> None:
    # vanilla; the same quality but slower; a trade; the trade's speed at lower quality
    assert strict_front([(40.0, 1.0), (40.0, 0.9), (39.0, 1.5), (38.0, 1.5)]) == [0, 2]


def test_nothing_has_an_empty_front() -> None:
    assert strict_front([]) == []


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        strict_front([(math.nan, 1.0)])
