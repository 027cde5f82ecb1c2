"""What is odd about single points, in one line per kind however many points it concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.report.point import PointSummary

_LENGTH_TOLERANCE = 0.05
# More names in a line are no longer read.
_MOST_NAMED = 6


class _Problem(NamedTuple):
    """One point's: `alone` is the line where no other point has the same, `detail` what follows its name else."""

    kind: str
    point: str
    alone: str
    detail: str


def doubts(points: Sequence[PointSummary], failed: pd.DataFrame, empty: Mapping[str, int]) -> list[str]:
    """What makes some of a point's figures doubtful.

    Args:
        failed: rows with an error.
        empty: point id -> how many of its outputs are empty.
    """
    found = []
    for point in points:
        found += _failures(point, failed)
        found += _outputs(point, empty.get(point.point_id, 0))
    return _lines(found)


def slower(points: Sequence[PointSummary]) -> list[str]:
    """The points that are slower than the baseline by more than chance: a finding, and no reason to doubt it."""
    found = []
    for point in points:
        total = point.speedup_total
        if total is not None and total.high < 1:
            alone = f"slower than the baseline: {total.value:.2f}x, interval {total.low:.2f} to {total.high:.2f}"
            kind = "slower than the baseline, in total time"
            found.append(_Problem(kind, point.point, alone, f"{total.value:.2f}x"))
    return _lines(found)


def _failures(point: PointSummary, failed: pd.DataFrame) -> list[_Problem]:
    found = []
    if point.errors:
        first = failed.loc[failed["point_id"] == point.point_id, "error"].iloc[0]
        alone = f"{point.errors} failed and are left out of every figure (the first: {first})"
        found.append(_Problem(alone, point.point, alone, ""))
    if point.diverged_texts and point.divergence_margin_max is not None:
        alone = (
            f"should reproduce the baseline's tokens, but {point.diverged_texts} of {point.texts} texts have others: "
            f"largest margin {point.divergence_margin_max:.2g} logits (rounding can break ties; a larger one is a bug)"
        )
        found.append(_Problem(alone, point.point, alone, ""))
    return found


def _outputs(point: PointSummary, empty: int) -> list[_Problem]:
    found = []
    if point.hit_limit is not None and point.hit_limit > 0:
        alone = f"{point.hit_limit} of the outputs ended at the length limit"
        found.append(_Problem("outputs that ended at the length limit", point.point, alone, f"{point.hit_limit}"))
    if point.length_ratio is not None and abs(point.length_ratio - 1) > _LENGTH_TOLERANCE:
        alone = f"outputs are {point.length_ratio:.2f} times as long as the baseline's: compare per token"
        kind = "outputs longer or shorter than the baseline's (compare per token)"
        found.append(_Problem(kind, point.point, alone, f"{point.length_ratio:.2f} times"))
    if empty:
        alone = f"{empty} of its outputs {'is' if empty == 1 else 'are'} empty"
        found.append(_Problem("empty outputs", point.point, alone, f"{empty}"))
    return found


def _lines(problems: Sequence[_Problem]) -> list[str]:
    kinds: dict[str, list[_Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, []).append(problem)
    return [_line(alike) for alike in kinds.values()]


def _line(alike: Sequence[_Problem]) -> str:
    if len(alike) == 1:
        return f"{alike[0].point}: {alike[0].alone}"
    named = [f"{problem.point} {problem.detail}".rstrip() for problem in alike[:_MOST_NAMED]]
    more = f" and {len(alike) - _MOST_NAMED} more" if len(alike) > _MOST_NAMED else ""
    return f"{alike[0].kind}: {', '.join(named)}{more}"
