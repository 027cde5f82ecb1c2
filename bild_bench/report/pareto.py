"""The Pareto front: which points no other one beats."""

from __future__ import annotations

import math
from collections.abc import Sequence


def strict_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The places of the points that no other one weakly dominates, from the slowest to the fastest.

    A point is weakly dominated by another that is at least as good in both figures and better in one. Of equal points
    the first in the order given is kept.

    Args:
        points: (quality, speed-up), more is better in both.

    Raises:
        ValueError: a figure is NaN, which cannot be compared.
    """
    if any(math.isnan(figure) for point in points for figure in point):
        raise ValueError("NaN cannot be compared: leave points with unknown figures out")
    # From the fastest down, only a better quality than any seen so far is not dominated. Among equally fast ones the
    # best comes first, and among equal ones the one given first.
    order = sorted(range(len(points)), key=lambda place: (-points[place][1], -points[place][0], place))
    front: list[int] = []
    for place in order:
        if not front or points[place][0] > points[front[-1]][0]:
            front.append(place)
    return front[::-1]
