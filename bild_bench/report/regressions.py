"""Is B worse than A by more than is allowed, and by more than the choice of texts explains?

The rule: a loss counts where it is more than the limit and its whole 95 % interval lies on the losing side of 0.
Intervals cover the choice of texts; what changes between two runs on one machine is for the limits to cover.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from bild_bench.errors import UsageError, unknown_name
from bild_bench.measure.intervals import Estimate
from bild_bench.report.compare import Comparison, Section
from bild_bench.report.compare_points import PointPair, Speed

_FIELD = "--fail-on"


@dataclass(frozen=True)
class Limits:
    """The most that may be lost; None where nothing is asked.

    quality: points of the metric. speed: per cent of the speed-up over the own baseline, decoding and total. time: per
    cent of seconds more, decoding and total, on the same machine only.
    """

    quality: float | None = None
    speed: float | None = None
    time: float | None = None


@dataclass(frozen=True)
class Loss:
    """What B lost of one figure: points, or per cent; below 0 where it gained. None where unknown.

    figure: "quality", "decoding speed-up", "total speed-up", "decoding time" or "total time". basis: both values.
    """

    figure: str
    lost: Estimate | None
    limit: float
    basis: str

    @property
    def tested(self) -> bool:
        """Whether there is an interval, which one text cannot have."""
        return self.lost is not None and not math.isnan(self.lost.low) and not math.isnan(self.lost.high)


@dataclass(frozen=True)
class Regression:
    """A point's loss beyond the limit. a, b: the experiments' directories; the rest as in `Loss`, above 0."""

    point: str
    figure: str
    loss: float
    low: float
    high: float
    limit: float
    basis: str
    a: str
    b: str

    @property
    def line(self) -> str:
        """For people, such as "bild fb=0.5: quality worse by 1.20 points [0.80, 1.70], limit 0.5 (BLEU 40 to 38.8)"."""
        unit, digits = ("points", 2) if self.figure == "quality" else ("%", 1)
        loss = f"{self.loss:.{digits}f} {unit} [{self.low:.{digits}f}, {self.high:.{digits}f}]"
        return f"{self.point}: {self.figure} worse by {loss}, limit {self.limit:g} ({self.basis}; B is {self.b})"


def parse_limits(text: str) -> Limits:
    """The limits in words such as "quality:0.5,speed:5%"; a limit of 0 allows no loss that can be told from chance.

    Raises:
        UsageError: another name, a name twice, or a limit that is no number of 0 or more.
    """
    names = [field.name for field in fields(Limits)]
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition(":"))
        if name not in names:
            raise unknown_name(_FIELD, name, names)
        if name in limits:
            raise UsageError(_FIELD, text, f"has {name} twice", "give each limit once")
        limit = _number(value if name == "quality" else value.removesuffix("%"))
        if limit is None:
            unit = "points, without %" if name == "quality" else "per cent"
            raise UsageError(_FIELD, part.strip(), f"needs 0 or more {unit}", "try quality:0.5,speed:5%")
        limits[name] = limit
    return Limits(**limits)


def regressions(comparison: Comparison, limits: Limits) -> list[Regression]:
    """Every loss that counts by the rule above."""
    return [
        Regression(
            *(point.point, loss.figure, loss.lost.value, loss.lost.low, loss.lost.high, loss.limit, loss.basis),
            *(str(section.a.directory), str(section.b.directory)),
        )
        for section in comparison.sections
        for point in section.points
        for loss in _losses(section, point, limits)
        if loss.tested and loss.lost is not None and loss.lost.value > loss.limit and loss.lost.low > 0
    ]


def untested(comparison: Comparison, limits: Limits) -> list[str]:
    """Losses that were asked about but cannot be tested, one line per point: a gate must not pass them in silence."""
    lines = []
    for section in comparison.sections:
        for point in section.points:
            blind = [loss for loss in _losses(section, point, limits) if not loss.tested]
            if blind:
                told = ", ".join(f"{loss.figure} ({loss.basis})" for loss in blind)
                lines.append(f"{point.point}: not tested: {told}")
    return lines


def _losses(section: Section, point: PointPair, limits: Limits) -> Iterator[Loss]:
    """One for each figure that is asked for."""
    times = {"decoding": point.decoding, "total": point.total}
    if limits.quality is not None:
        basis = f"{section.a.run.metric} {point.quality.a:.2f} to {point.quality.b:.2f}"
        gain = point.quality.difference
        yield _loss("quality", Estimate(-gain.value, -gain.high, -gain.low), limits.quality, basis)
    if limits.speed is not None:
        for name, speed in times.items():
            yield _loss(f"{name} speed-up", _speed_lost(speed), limits.speed, _speed_basis(speed))
    if limits.time is not None:
        for name, speed in times.items():
            basis = "the machines differ" if not section.same_machine else "seconds unknown"
            if speed.time_ratio is not None:
                basis = f"B took {speed.time_ratio.value:.2f} times A's seconds"
            yield _loss(f"{name} time", _more_time(speed), limits.time, basis)


def _loss(figure: str, lost: Estimate | None, limit: float, basis: str) -> Loss:
    loss = Loss(figure, lost, limit, basis)
    return loss if loss.tested or lost is None else Loss(figure, lost, limit, "no interval: a single text")


def _speed_lost(speed: Speed) -> Estimate | None:
    ratio = speed.speedup_ratio
    return None if ratio is None else Estimate(*(100 * (1 - end) for end in (ratio.value, ratio.high, ratio.low)))


def _speed_basis(speed: Speed) -> str:
    if speed.a is None or speed.b is None:
        return f"{'A' if speed.a is None else 'B'} has no baseline on the same texts"
    return f"{speed.a.value:.2f}x to {speed.b.value:.2f}x"


def _more_time(speed: Speed) -> Estimate | None:
    ratio = speed.time_ratio
    return None if ratio is None else Estimate(*(100 * (end - 1) for end in (ratio.value, ratio.low, ratio.high)))


def _number(text: str) -> float | None:
    """A finite number of 0 or more."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None
