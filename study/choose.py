"""Thresholds from validation texts: which point stands for which row of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bild_bench.plan import Point
from bild_bench.report.summary import PointSummary
from bild_bench.tuning import choose_point

NO_LOSS, WITHIN_ONE = "no loss", "within 1 point"
SPECULATIVE, LIKE_LATENCY, BEST = "speculative", "like speculative's latency", "best quality"
# How a rule is named where its test score is shown, which may be below vanilla's.
NAMED = {NO_LOSS: "no loss on validation", WITHIN_ONE: "within 1 point on validation"}

Figures = Mapping[Point, PointSummary]


@dataclass(frozen=True)
class Chosen:
    """A point, and the rule that it was chosen by."""

    rule: str
    point: Point


def choose(figures: Figures) -> tuple[Chosen, ...]:
    """The points of every rule, for each small model and each of CALM's measures.

    no loss, within 1 point: the fastest whose quality is at least vanilla's, less the drop. speculative: its fastest
    window. like speculative's latency: BiLD's best quality among points at least as fast as that. best quality: BiLD's.
    A rule that no point fulfils is left out.

    Args:
        figures: of the baseline and all candidates, over the same validation texts.
    """
    return tuple(found for alike in _alike(figures).values() for found in _of_one_model(alike, _baseline(figures)))


def _alike(figures: Figures) -> dict[tuple[str, str], Figures]:
    """The candidates by small model and measure: what is chosen from together."""
    groups: dict[tuple[str, str], dict[Point, PointSummary]] = {}
    for point, summary in figures.items():
        if summary.role != "baseline":
            key = (point.small or "", getattr(point.settings, "measure", ""))
            groups.setdefault(key, {})[point] = summary
    return dict(groups)


def _of_one_model(candidates: Figures, baseline: PointSummary) -> Iterator[Chosen]:
    windows = {point: found for point, found in candidates.items() if point.method.name == "speculative"}
    others = {point: found for point, found in candidates.items() if point not in windows}
    of_summary = {id(found): point for point, found in others.items()}
    for rule, drop in ((NO_LOSS, 0.0), (WITHIN_ONE, 1.0)):
        fastest = choose_point([baseline, *others.values()], drop)
        if fastest is not None:
            yield Chosen(rule, of_summary[id(fastest)])
    if not windows:
        return
    window = max(windows, key=lambda point: _speed(windows[point]))
    yield Chosen(SPECULATIVE, window)
    rivals = [point for point, found in others.items() if _speed(found) >= _speed(windows[window])]
    for rule, allowed in ((LIKE_LATENCY, rivals), (BEST, list(others))):
        if allowed:
            yield Chosen(rule, max(allowed, key=lambda point: (_quality(others[point]), _speed(others[point]))))


def _baseline(figures: Figures) -> PointSummary:
    return next(summary for summary in figures.values() if summary.role == "baseline")


def _speed(summary: PointSummary) -> float:
    return 0.0 if summary.speedup_decoding is None else summary.speedup_decoding.value


def _quality(summary: PointSummary) -> float:
    return float("-inf") if summary.quality is None else summary.quality.value
