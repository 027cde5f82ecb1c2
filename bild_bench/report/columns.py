"""The figures of the terminal's tables: what each column is called, how it reads, and when it says nothing."""

from __future__ import annotations

from collections.abc import Callable

from bild_bench.measure.intervals import Estimate
from bild_bench.report.point import PointSummary, Summary

UNKNOWN = "-"

QUALITY = ("quality", "vs vanilla", "chrF")
SPEED = ("total speed-up", "decoding speed-up", "ms/token", "tokens/s")
LATENCY = ("p50 ms", "p95 ms", "p99 ms")
TOKENS = ("fallback %", "low-conf %", "rollback %", "accepted %", "accepted length", "by S %", "by L %")
# Only where some point leaves the decoder early.
EXIT = "exit layer"

_DUST = 1e-6
_ALWAYS = {"quality", "total speed-up", "decoding speed-up", "ms/token"}
# Where a column has no other cells it tells nothing: these are vanilla's own.
_VOID = {"vs vanilla": {UNKNOWN, "0.00"}, "accepted length": {UNKNOWN, "1.00"}, "by L %": {UNKNOWN, "100.0"}}

_CELLS: dict[str, Callable[[PointSummary], str]] = {
    "quality": lambda point: _quality(point),
    "vs vanilla": lambda point: signed(point.quality_difference),
    "chrF": lambda point: _figure(None if point.chrf is None else point.chrf.value, 2),
    "total speed-up": lambda point: _times(point.speedup_total),
    "decoding speed-up": lambda point: _times(point.speedup_decoding),
    "ms/token": lambda point: _figure(point.ms_per_token, 2),
    "tokens/s": lambda point: _figure(point.tokens_per_second, 0),
    "p50 ms": lambda point: _figure(point.latency_p50_ms, 1),
    "p95 ms": lambda point: _figure(point.latency_p95_ms, 1),
    "p99 ms": lambda point: _figure(point.latency_p99_ms, 1),
    "fallback %": lambda point: _figure(point.fallback_pct, 1),
    "low-conf %": lambda point: _figure(point.low_confidence_pct, 1),
    "rollback %": lambda point: _figure(point.rollback_pct, 1),
    "accepted %": lambda point: _figure(point.acceptance_pct, 1),
    "accepted length": lambda point: _figure(point.mean_accepted_length, 2),
    "by S %": lambda point: _figure(point.small_share_pct, 1),
    "by L %": lambda point: _figure(point.large_share_pct, 1),
    EXIT: lambda point: _figure(point.average_exit_layer, 2),
}


def cell(column: str, point: PointSummary) -> str:
    """A figure of a point as it reads in the table."""
    return _CELLS[column](point)


def told_columns(summary: Summary) -> tuple[str, ...]:
    """The columns that say something of these points, in order.

    Folded away is a column that is unknown or 0 everywhere (or has vanilla's own value, where that is another), the
    low-confidence share where it is the fallback share, and the small model's share where it is the rest of the large
    model's. JSON and CSV have all.
    """
    cells = {name: [cell(name, point) for point in summary.points] for name in _CELLS}
    empty = {name for name, shown in cells.items() if _VOID.get(name, {UNKNOWN, "0", "0.0"}).issuperset(shown)}
    if cells["low-conf %"] == cells["fallback %"]:
        empty.add("low-conf %")
    if "by L %" not in empty and all(_shares_add_up(point) for point in summary.points):
        empty.add("by S %")
    return tuple(name for name in cells if name in _ALWAYS or name not in empty)


def _shares_add_up(point: PointSummary) -> bool:
    small, large = point.small_share_pct, point.large_share_pct
    if small is None or large is None:
        return small is large
    return abs(small + large - 100) < _DUST


def signed(estimate: Estimate | None) -> str:
    """A difference such as "-0.64 [-0.97, -0.32]"; the baseline's from itself is "0.00"."""
    if estimate is None:
        return UNKNOWN
    if estimate.value == estimate.low == estimate.high == 0:
        return "0.00"
    # NaN: no interval of one text.
    interval = f" [{estimate.low:+.2f}, {estimate.high:+.2f}]" if estimate.low <= estimate.high else ""
    return f"{estimate.value:+.2f}{interval}"


def _figure(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def _quality(point: PointSummary) -> str:
    if point.quality is None or point.quality_spread is None:
        return _figure(None if point.quality is None else point.quality.value, 2)
    return f"{point.quality.value:.1f} ± {point.quality_spread:.1f}"


def _times(estimate: Estimate | None) -> str:
    if estimate is None:
        return UNKNOWN
    # No interval to show: NaN (one text), or no width (the baseline against itself).
    if not estimate.low < estimate.high:
        return f"{estimate.value:.2f}x"
    return f"{estimate.value:.2f}x [{estimate.low:.2f}, {estimate.high:.2f}]"
