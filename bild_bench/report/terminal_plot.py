"""Quality against decoding speed-up, drawn in characters for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bild_bench.report.pareto import strict_front

if TYPE_CHECKING:
    from rich.text import Text

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Mark(NamedTuple):
    """One point of the plot: quality in the metric's points, speed-up as a ratio over the baseline."""

    label: str
    quality: float
    speedup: float


def scatter(marks: Sequence[Mark], metric: str, *, width: int = 60, height: int = 12) -> Text:
    """A plot with one letter per point, front points in bold green, and a legend of the front.

    Points that fall onto one cell share it: the best of them by quality is drawn. Beyond 52 points, those off the front
    are drawn as dots.

    Args:
        marks: at least one; figures are finite.
        metric: name of the vertical axis.
        width, height: of the plotting area, in cells.
    """
    from rich.text import Text

    front = strict_front([(mark.quality, mark.speedup) for mark in marks])
    named = [*front, *(place for place in range(len(marks)) if place not in front)]
    letters = dict(zip(named, _LETTERS, strict=False))
    low, high = _range([mark.quality for mark in marks])
    slow, fast = _range([mark.speedup for mark in marks])
    cells: dict[tuple[int, int], int] = {}
    # Front points are drawn last, the best of them on top.
    for place in [*reversed(named[len(front) :]), *reversed(front)]:
        mark = marks[place]
        row = round((high - mark.quality) / (high - low) * (height - 1))
        cells[row, round((mark.speedup - slow) / (fast - slow) * (width - 1))] = place
    text = Text(f"{metric}\n")
    for row in range(height):
        edge = f"{high:8.1f} ┤" if row == 0 else f"{low:8.1f} ┤" if row == height - 1 else f"{'':8} │"
        text.append(edge)
        for column in range(width):
            found = cells.get((row, column))
            if found is None:
                text.append(" ")
            else:
                text.append(letters.get(found, "·"), style="bold green" if found in front else "dim")
        text.append("\n")
    text.append(f"{'':8} └{'─' * width}\n")
    slowest, fastest = f"{slow:.2f}x", f"{fast:.2f}x decoding speed-up"
    gap = max(1, width - len(slowest) - len(fastest))
    text.append(f"{'':10}{slowest}{' ' * gap}{fastest}\n")
    for place in front if len(marks) > _MOST_NAMED else named:
        style = "bold green" if place in front else "dim"
        text.append(f"{'':10}{letters.get(place, '·')}  ", style=style).append(f"{marks[place].label}\n")
    text.rstrip()
    return text


# A longer legend would push the plot off the screen.
_MOST_NAMED = 12


def _range(figures: Sequence[float]) -> tuple[float, float]:
    low, high = min(figures), max(figures)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
