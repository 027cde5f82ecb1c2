"""Where the names of the front's points go, so that none covers another; one without room is left to the tooltip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Pixels: what a label of 11 px letters takes, and how far from its mark it stands.
_LETTER, _LINE, _AWAY, _MARK = 6.0, 13.0, 8.0, 7.0

# Name -> (side, above): tried in this order. The front falls to the right, so above right is the emptiest.
PLACES = {"above right": (1, True), "below left": (-1, False), "above left": (-1, True), "below right": (1, False)}


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


def places(
    rows: Sequence[Mapping[str, Any]],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    size: tuple[float, float],
) -> dict[str, str]:
    """Label -> one of `PLACES`, for those rows on the front that find room.

    Args:
        rows: data of the plot, with "label", "short", "front", "named", "speedup" and "quality".
        x_range, y_range: of the axes.
        size: width and height of the plot in pixels.
    """
    spots = {
        row["label"]: (
            size[0] * (row["speedup"] - x_range[0]) / (x_range[1] - x_range[0]),
            size[1] * (y_range[1] - row["quality"]) / (y_range[1] - y_range[0]),
        )
        for row in rows
    }
    taken = [Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in spots.values()]
    chosen = {}
    for row in sorted((row for row in rows if row["named"]), key=lambda row: row["speedup"]):
        for name, box in _candidates(*spots[row["label"]], row["short"]):
            inside = box.left >= 0 and box.right <= size[0] and box.top >= 0 and box.bottom <= size[1]
            if inside and not any(box.meets(other) for other in taken):
                chosen[row["label"]] = name
                taken.append(box)
                break
    return chosen


def layers(used: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A text layer for each place in use; rows say theirs in "place"."""
    for name in dict.fromkeys(used):
        side, above = PLACES[name]
        align = {"align": "left" if side > 0 else "right", "dx": side * _AWAY}
        line = {"baseline": "bottom", "dy": -5} if above else {"baseline": "top", "dy": 5}
        yield {
            "transform": [{"filter": f"datum.place === '{name}'"}],
            "mark": {"type": "text", "fontSize": 11, **align, **line},
            "encoding": {"text": {"field": "short"}},
        }


def _candidates(x: float, y: float, text: str) -> Iterator[tuple[str, Box]]:
    width = _LETTER * len(text)
    for name, (side, above) in PLACES.items():
        left = x + _AWAY if side > 0 else x - _AWAY - width
        top = y - 5 - _LINE if above else y + 5
        yield name, Box(left, top, left + width, top + _LINE)
