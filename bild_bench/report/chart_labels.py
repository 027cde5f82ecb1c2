"""Where names go on the Pareto plot, so that none covers another; one without room is left to the tooltip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Row = Mapping[str, Any]

# Pixels: what a label of 11 px letters takes, and how far from its mark it stands.
_LETTER, _LINE, _AWAY, _MARK = 6.0, 13.0, 8.0, 7.0
_BEADS = 40
_OFF = 4.0  # how far a line's name stands from its line

# Name -> (side, above): tried in this order. The front falls to the right, so above right is the emptiest.
PLACES = {"above right": (1, True), "below left": (-1, False), "above left": (-1, True), "below right": (1, False)}
# The same for the name of a line across the plot, at its right or left end.
ENDS = {"right above": (1, True), "right below": (1, False), "left above": (-1, True), "left below": (-1, False)}


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True)
class Frame:
    """The plot: the axes' ranges, width and height in pixels, the fields of a row that the axes show, and
    whether the line through the large marks goes straight from one to the next and not in steps."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    size: tuple[float, float]
    x_field: str = "speedup"
    y_field: str = "quality"
    straight: bool = False

    def spot(self, row: Row) -> tuple[float, float]:
        """A row's mark in pixels."""
        across = (row[self.x_field] - self.x_range[0]) / (self.x_range[1] - self.x_range[0])
        return self.size[0] * across, self.height(row)

    def height(self, row: Row) -> float:
        """A row or a line in pixels from the top."""
        down: float = (self.y_range[1] - row[self.y_field]) / (self.y_range[1] - self.y_range[0])
        return self.size[1] * down

    def holds(self, box: Box) -> bool:
        """Whether the box is inside the plot."""
        return box.left >= 0 and box.right <= self.size[0] and box.top >= 0 and box.bottom <= self.size[1]


def places(rows: Sequence[Row], lines: Sequence[Row], frame: Frame) -> tuple[dict[str, str], dict[str, str]]:
    """Label -> one of `PLACES` for rows that are to be named, and name -> one of `ENDS` for lines, where there is room.

    No name covers a mark or another name. Of the free places the first is taken that the fewest lines run through.

    Args:
        rows: data of the plot, with "label", "short", "front", "named" and the fields of both axes.
        lines: the lines across it, with "name" and the vertical axis's field.
    """
    taken = [Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in map(frame.spot, rows)]
    strokes = [*_across(lines, frame), *(_straight if frame.straight else _steps)(rows, frame)]
    ends: dict[str, str] = {}
    for line in lines:
        _place(line["name"], _line_candidates(line, frame), ends, taken, strokes, frame)
    chosen: dict[str, str] = {}
    for row in sorted((row for row in rows if row["named"]), key=lambda row: row[frame.x_field]):
        _place(row["label"], _candidates(row, frame), chosen, taken, strokes, frame)
    return chosen, ends


def layers(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Text layers for each place in use; rows say theirs in "place"."""
    for name in dict.fromkeys(row["place"] for row in rows if row["place"]):
        side, above = PLACES[name]
        align = {"align": "left" if side > 0 else "right", "dx": side * _AWAY}
        line = {"baseline": "bottom", "dy": -_AWAY} if above else {"baseline": "top", "dy": _AWAY}
        yield from with_halo(
            {
                "transform": [{"filter": f"datum.place === '{name}'"}],
                "mark": {"type": "text", "fontSize": 11, **align, **line},
                "encoding": {"text": {"field": "short"}},
            }
        )


def line_layers(lines: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Text layers for the names of lines; these say their end in "end"."""
    for name in dict.fromkeys(line["end"] for line in lines if line["end"]):
        side, above = ENDS[name]
        align = {"align": "right" if side > 0 else "left", "dx": -2 * side, "x": "width" if side > 0 else 0}
        line = {"baseline": "bottom", "dy": -_OFF} if above else {"baseline": "top", "dy": _OFF}
        yield from with_halo(
            {
                "transform": [{"filter": f"datum.end === '{name}'"}],
                "mark": {"type": "text", "style": "reference", "fontSize": 11, **align, **line},
                "encoding": {"x": None, "text": {"field": "name"}},
            }
        )


def with_halo(layer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The text, and below it its outline in the ground's colour, so that bars may run behind it."""
    yield {**layer, "mark": {**layer["mark"], "style": "halo"}}
    yield layer


def _place(
    name: str,
    candidates: Iterable[tuple[str, Box]],
    chosen: dict[str, str],
    taken: list[Box],
    strokes: Sequence[Box],
    frame: Frame,
) -> None:
    """Note the best free candidate in `chosen` and its box in `taken`; neither where none is free."""
    free = [(where, box) for where, box in candidates if frame.holds(box) and not any(map(box.meets, taken))]
    if free:
        where, box = min(free, key=lambda candidate: sum(map(candidate[1].meets, strokes)))
        chosen[name] = where
        taken.append(box)


def _across(lines: Sequence[Row], frame: Frame) -> Iterator[Box]:
    for y in map(frame.height, lines):
        yield Box(0, y - 1, frame.size[0], y + 1)


def _steps(rows: Sequence[Row], frame: Frame) -> Iterator[Box]:
    """The front's line: down at a point's speed-up, then on to the next faster point."""
    spots = sorted(frame.spot(row) for row in rows if row["front"])
    for (x, y), (next_x, next_y) in pairwise(spots):
        yield Box(x - 1, y, x + 1, next_y)
        yield Box(x, next_y - 1, next_x, next_y + 1)


def _straight(rows: Sequence[Row], frame: Frame) -> Iterator[Box]:
    """The line between neighbours, as a string of small boxes."""
    spots = sorted(frame.spot(row) for row in rows if row["front"])
    for (x, y), (next_x, next_y) in pairwise(spots):
        for part in (step / _BEADS for step in range(_BEADS)):
            across, down = x + part * (next_x - x), y + part * (next_y - y)
            yield Box(across - 1, down - 1, across + 1, down + 1)


def _candidates(row: Row, frame: Frame) -> Iterator[tuple[str, Box]]:
    width = _LETTER * len(row["short"])
    x, y = frame.spot(row)
    for name, (side, above) in PLACES.items():
        left = x + _AWAY if side > 0 else x - _AWAY - width
        top = y - _AWAY - _LINE if above else y + _AWAY
        yield name, Box(left, top, left + width, top + _LINE)


def _line_candidates(line: Row, frame: Frame) -> Iterator[tuple[str, Box]]:
    width = _LETTER * len(line["name"])
    y = frame.height(line)
    for name, (side, above) in ENDS.items():
        left = frame.size[0] - 2 - width if side > 0 else 2.0
        top = y - _OFF - _LINE if above else y + _OFF
        yield name, Box(left, top, left + width, top + _LINE)
