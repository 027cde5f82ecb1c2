"""What the axes of a plot must hold, and how large it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from textwrap import wrap
from typing import Any

from bild_bench.report.chart_rows import Range, Row, inside

# A reference further from the points than this share of their spread is named in words: it would flatten the plot.
_REACH = 0.5
# Pixels that a letter of a subtitle and of a title takes, and what stands beside the plotting area: the axis, and above
# it the plot's menu.
_LETTER, _TITLE_LETTER, _AXIS, _MENU = 5.7, 8.4, 50, 24


@dataclass(frozen=True)
class Size:
    """Of the plotting area, in pixels; `narrow` for a phone: fewer ticks, and titles that are broken into lines."""

    width: int
    height: int
    narrow: bool = False

    @property
    def columns(self) -> int:
        """Of a legend: as many as fit side by side."""
        return 3 if self.narrow else 6

    @property
    def ticks(self) -> tuple[int, int]:
        """How many are wanted on either axis."""
        return (4, 5) if self.narrow else (7, 6)

    def title(self, text: str) -> str | list[str]:
        """A title as lines that fit."""
        return _wrapped(text, (self.width + _AXIS - _MENU) / _TITLE_LETTER) if self.narrow else text

    def lines(self, texts: Sequence[str]) -> list[str]:
        """Texts of a subtitle as lines that fit."""
        if not self.narrow:
            return list(texts)
        return [line for text in texts for line in _wrapped(text, (self.width + _AXIS) / _LETTER)]


FILE = Size(620, 380)
WIDE = Size(990, 470)
NARROW = Size(286, 320, narrow=True)


def _wrapped(text: str, letters: float) -> list[str]:
    """Lines broken between words, and between the parts of a score's signature."""
    return [line.replace("| ", "|") for line in wrap(text.replace("|", "| "), int(letters))]


def span(values: Sequence[float]) -> Range:
    """A range that holds the values, with a margin."""
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) if high > low else max(0.05 * abs(high), 0.05)
    return low - margin, high + margin


def with_bars(held: Range, field: str, rows: Sequence[Row]) -> Range:
    """The range, widened for the bars of a field, but not for the few that are far longer than the others.

    Those run out of the plot: with the whole of them the points would stand on one heap.
    """
    lows, highs = known([row[f"{field}_low"] for row in rows]), known([row[f"{field}_high"] for row in rows])
    if not lows or not highs:
        return held
    # A point that equals vanilla on every text has no bar: many of them would make the usual bar one of no length.
    widths = [high - low for low, high in zip(lows, highs, strict=True) if high > low]
    usual = median(widths) if widths else 0.0
    most = max(held[1] - held[0], usual) / 2 if usual > 0 else 0.0
    return max(min(*lows, held[0]), held[0] - most), min(max(*highs, held[1]), held[1] + most)


def leaving(held: Range, field: str, rows: Sequence[Row]) -> bool:
    """Whether some bar of a field runs out of the range."""
    ends = known([row[f"{field}_{end}"] for row in rows for end in ("low", "high")])
    return any(not inside(end, held) for end in ends)


def reached(held: Range, value: float) -> Range:
    """The range, widened to hold a value that is near."""
    low, high = held
    reach = _REACH * (high - low)
    if not low - reach <= value <= high + reach:
        return held
    return min(low, value - 0.1 * reach), max(high, value + 0.1 * reach)


def known(values: Sequence[float | None]) -> list[float]:
    """The values that are."""
    return [value for value in values if value is not None]


def axis(field: str, held: Range, ticks: int, title: str, label: str | None = None) -> dict[str, Any]:
    """A quantitative axis over exactly this range; `label` is Vega's expression for the text of a tick."""
    drawn: dict[str, Any] = {"tickCount": ticks, "title": title}
    if label is not None:
        drawn["labelExpr"] = label
    scale = {"domain": list(held), "zero": False, "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": drawn}
