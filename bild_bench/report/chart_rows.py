"""The points of a plot as data, and what stands on its vertical axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bild_bench.printable import one_line
from bild_bench.report.collect import Entry
from bild_bench.report.paper import metric_name

Row = dict[str, Any]
Range = tuple[float, float]


@dataclass(frozen=True)
class View:
    """What the vertical axis shows.

    Args:
        field: of a row; its interval is under the same name with "_low" and "_high".
        bars: what the vertical bars are.
        signed: whether values are written with their sign.
    """

    field: str
    bars: str
    signed: bool = False

    def title(self, metric: str) -> str:
        """The axis's title."""
        name = metric_name(metric)
        return f"{name} minus vanilla's" if self.signed else name

    def bars_say(self, cut: bool) -> str:
        """What the bars are, for a subtitle; `cut`: some run out of the plot."""
        return f"{self.bars} (those that leave the plot are longer)" if cut else self.bars

    def written(self, value: float) -> str:
        """A value for people."""
        return signed(f"{value:+.2f}") if self.signed else f"{value:.2f}"


SCORE = View("quality", "bars: 95 % intervals over texts, each point by itself")
# Most of an unpaired interval is which texts were drawn, the same for all points: paired bars are without it.
DIFFERENCE = View("difference", "bars: 95 % intervals, paired with vanilla on the same texts", signed=True)


def row_of(entry: Entry) -> Row:
    """One point as data: figures, intervals, and ready-made texts for the tooltip."""
    summary = entry.summary
    speed, total, difference = summary.speedup_decoding, summary.speedup_total, summary.quality_difference
    row: Row = {
        "label": entry.label,
        "short": _short(entry),
        "method": summary.method,
        "front": entry.front,
        "baseline": summary.role == "baseline",
        # The reference lines name vanilla and the small model already.
        "named": entry.front and summary.role != "baseline" and summary.method != "small",
        "quality": entry.quality,
        "quality_low": _finite(summary.quality_low),
        "quality_high": _finite(summary.quality_high),
        "difference": None if difference is None else _finite(difference.value),
        "difference_low": None if difference is None else _finite(difference.low),
        "difference_high": None if difference is None else _finite(difference.high),
        "speedup": entry.speedup,
        "speedup_low": None if speed is None else _finite(speed.low),
        "speedup_high": None if speed is None else _finite(speed.high),
        "total_speedup": None if total is None else total.value,
        "fallback_pct": summary.fallback_pct,
        "rollback_pct": summary.rollback_pct,
        "share": summary.large_share_pct,
    }
    row["quality_text"] = _with_interval(row, "quality", ".2f", "")
    row["difference_text"] = signed(_with_interval(row, "difference", "+.2f", ""))
    row["speedup_text"] = _with_interval(row, "speedup", ".2f", "x")
    return row


def inside(value: float, span: Range) -> bool:
    """Whether an axis of this range holds the value."""
    return span[0] <= value <= span[1]


def signed(text: str) -> str:
    """Numbers with a sign as they are set: with a minus, not a hyphen."""
    return text.replace("-", "−") if text != "-" else text


def _finite(value: float | None) -> float | None:
    return value if value is not None and value == value else None


def _with_interval(row: Mapping[str, Any], name: str, pattern: str, unit: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if value is None:
        return "-"
    interval = "" if low is None or high is None or low == high else f" [{low:{pattern}}, {high:{pattern}}]"
    return f"{value:{pattern}}{unit}{interval}"


def _short(entry: Entry) -> str:
    """What is written beside a mark: the settings, since colour and shape say the method."""
    name, method = one_line(entry.summary.point), entry.summary.method
    return name.removeprefix(f"{method} ")
