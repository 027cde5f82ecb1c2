"""Thresholds chosen on validation texts and reported once on test texts: the "no loss" and "one point" rows of a paper.

Two ordinary experiments, one after the other: all points of a grid on the validation texts, then only the chosen ones
on the test texts, each beside the baseline. A point's figures on the texts it was chosen on flatter it; those on the
test texts do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from bild_bench import results
from bild_bench.errors import RunError, UsageError
from bild_bench.experiment import Track, run_experiment, untracked
from bild_bench.held_out import Texts, shared_texts
from bild_bench.next_commands import Next, after_tune
from bild_bench.plan import Point, code_version, identity, with_baseline
from bild_bench.report.caveats import caveats
from bild_bench.report.significance import Significance, quality_significance
from bild_bench.report.summary import PointSummary, Summary, summarise
from bild_bench.setup import Announce, Request, choose, silent
from bild_bench.tasks import Task
from bild_bench.whole_files import file_name

# A score printed as equal must not count as lower for a rounding in its last bits.
_TIE = 1e-9


@dataclass(frozen=True, repr=False)
class Measured:
    """A complete experiment and its figures."""

    experiment: results.Experiment
    summary: Summary

    @property
    def baseline(self) -> PointSummary:
        """Vanilla's figures."""
        return next(point for point in self.summary.points if point.role == "baseline")

    def __repr__(self) -> str:
        return f"Measured({self.experiment!r})"


@dataclass(frozen=True)
class Choice:
    """The fastest point within a drop, and how it did on texts it was not chosen on.

    Args:
        max_drop: points of quality that it was allowed to lose on the validation texts.
        point: what was chosen; vanilla where every point within the drop is slower on the validation texts.
        on_validation, on_test: its figures on either texts; those on the validation texts are in-sample.
        difference: quality minus vanilla's on the test texts; None where no text was decoded by both.
        slower: where vanilla was chosen, the fastest other point within the drop, by its validation figures.
    """

    max_drop: float
    point: Point
    on_validation: PointSummary
    on_test: PointSummary
    difference: Significance | None
    slower: PointSummary | None = None

    @property
    def held(self) -> bool | None:
        """Whether the drop on the test texts is no larger than what was allowed; None where it is unknown."""
        return None if self.difference is None else self.difference.difference >= -self.max_drop - _TIE


@dataclass(frozen=True, repr=False)
class Tuned:
    """What `tune` found.

    Args:
        directory: holds both experiments: validation/ and test/.
        choices: one for each drop for which a point qualified, in the order asked for.
        missed: the drops for which none did, ascending.
        shared_texts: test texts that are among the validation texts too, before any sampling.
        warnings: what a reader must know first, of the chosen points only.
        following: the commands that run the chosen points.
    """

    directory: Path
    validation: Measured
    test: Measured
    choices: tuple[Choice, ...]
    missed: tuple[float, ...]
    shared_texts: int
    warnings: tuple[str, ...]
    following: tuple[Next, ...] = ()

    def __repr__(self) -> str:
        chosen = ", ".join(f"{choice.point.label} for a drop of {choice.max_drop:g}" for choice in self.choices)
        return f"Tuned({str(self.directory)!r}: {chosen})"


def choose_point(points: Sequence[PointSummary], max_drop: float) -> PointSummary | None:
    """The fastest point, by decoding speed-up, whose quality is at least the baseline's minus `max_drop`.

    Never the baseline: whether what is found is faster than that is for the caller to see.

    Of equally fast ones the one of higher quality. A point counts only where it decoded every text that the baseline
    decoded: a score over fewer texts is no match for one over all. None where no point qualifies.

    Args:
        points: the baseline and others, over the same texts.
        max_drop: in points of the metric, 0 or more.
    """
    baseline = next(point for point in points if point.role == "baseline")
    if baseline.quality is None:
        return None
    able = [
        (point.speedup_decoding.value, point.quality.value, point)
        for point in points
        if point.role != "baseline"
        and point.texts == point.paired_texts == baseline.texts
        and point.speedup_decoding is not None
        and point.quality is not None
        and point.quality.value >= baseline.quality.value - max_drop - _TIE
    ]
    return max(able, key=lambda found: found[:2])[2] if able else None


def tune(
    request: Request,
    points: Sequence[Point],
    max_drops: Sequence[float],
    validation: Texts,
    test: Texts,
    *,
    announce: Announce = silent,
    track: Track = untracked,
) -> Tuned:
    """Choose a point for each drop on the validation texts, and measure the chosen ones on the test texts.

    What an earlier call of the same left is gone on with; what is complete is read and not measured again.

    Args:
        request: task, pair and machine; its data, split and limit are those of `validation` and `test` in turn. Its
            `out` gets the folders validation and test; without one it is a folder under `results` named by all of this.
        points, max_drops: what to choose from, without the baseline, and what may be lost; see `choose_point`.

    Raises:
        UsageError, DataError: before anything is decoded, also where test and validation texts are the same.
        RunError: no point qualifies for any drop, or as `run_experiment`.
    """
    _check(request, points, max_drops, test)
    task, pair = choose(request, with_baseline(points))
    sides = [_located(texts, "embedded" if pair.comes_with_package else "hub") for texts in (validation, test)]
    shared = shared_texts(task, sides[0], sides[1], announce)
    directory = _directory(request, task, points, max_drops, sides)
    measure = partial(_measure, request, announce=announce, track=track)
    first = measure(with_baseline(points), sides[0], directory / "validation")
    picked = _picked(first, points, max_drops)
    tested = with_baseline(list(dict.fromkeys(point for point, *_ in picked.values())))
    # Chosen anew, the number of threads might be another one.
    asked = replace(request, threads=int(first.experiment.run.environment["threads"]))
    second = _measure(asked, tested, sides[1], directory / "test", announce=announce, track=track)
    figures = dict(zip(tested, second.summary.points, strict=True))
    choices = tuple(
        Choice(drop, point, before, figures[point], _difference(second, figures[point]), slower)
        for drop, (point, before, slower) in picked.items()
    )
    warnings = _warnings(first, second, choices, shared)
    missed = tuple(sorted(set(max_drops) - picked.keys()))
    following = after_tune(request, sides[1], [(f"a drop of {one.max_drop:g}", one.point) for one in choices])
    return Tuned(directory, first, second, choices, missed, shared, warnings, tuple(following))


def _check(request: Request, points: Sequence[Point], max_drops: Sequence[float], test: Texts) -> None:
    for drop in max_drops:
        if not 0 <= drop < float("inf"):
            raise UsageError("--max-drop", drop, "must be 0 or more points of quality", "try 0,1")
    if test.limit is not None and test.limit < 1:
        raise UsageError("--test-limit", test.limit, "must be at least 1", "leave it out to use every text")
    if not any(point.method.name != "vanilla" for point in points):
        raise UsageError("--mode", "vanilla", "is what the others are compared with", "choose another, such as bild")
    for name in ("sampling", "budget", "prune", "extend"):
        value = getattr(request, name)
        if value is not None and value is not False:
            problem = "cannot be used with tune: every point decodes every text once, by greedy search"
            raise UsageError(name, value, problem, "leave it out")


def _located(texts: Texts, usual: str) -> Texts:
    return replace(texts, data=usual) if texts.data is None else texts


def _directory(
    request: Request, task: Task, points: Sequence[Point], max_drops: Sequence[float], sides: Sequence[Texts]
) -> Path:
    """Where it was asked for; else one named by all that is asked, so that the same command finds it again."""
    if request.out is not None:
        return request.out
    asked = {name: value for name, value in asdict(request).items() if name not in ("out", "results", "command")}
    tried = [[point.method.name, asdict(point.settings), point.small] for point in points]
    texts = [asdict(side) for side in sides]
    name = identity(asked=asked, points=tried, max_drops=list(max_drops), texts=texts, code=code_version())
    return request.results / f"tune-{file_name(task.name)}-{name}"


def _measure(
    request: Request, points: Sequence[Point], texts: Texts, out: Path, *, announce: Announce, track: Track
) -> Measured:
    counts = {1: "vanilla alone", 2: "1 point beside vanilla"}
    count = counts.get(len(points), f"{len(points) - 1} points beside vanilla")
    announce(f"{out.name}: {count} on {texts.data} ({texts.split})")
    asked = replace(request, data=texts.data, split=texts.split, limit=texts.limit, out=out)
    experiment = results.read(run_experiment(asked, points, announce=announce, track=track))
    return Measured(experiment, summarise(experiment))


def _picked(
    measured: Measured, points: Sequence[Point], max_drops: Sequence[float]
) -> dict[float, tuple[Point, PointSummary, PointSummary | None]]:
    """The chosen point of each drop, its figures, and a point that is slower than vanilla, which then is the choice.

    Drops for which no point qualified are left out.
    """
    of_summary = dict(zip((found.point_id for found in measured.summary.points), with_baseline(points), strict=True))
    picked: dict[float, tuple[Point, PointSummary, PointSummary | None]] = {}
    for drop in max_drops:
        found = choose_point(measured.summary.points, drop)
        if found is None:
            continue
        speed = found.speedup_decoding
        if speed is not None and speed.value < 1:
            picked[drop] = (of_summary[measured.baseline.point_id], measured.baseline, found)
        else:
            picked[drop] = (of_summary[found.point_id], found, None)
    if not picked:
        raise _nothing_qualifies(measured, max_drops)
    return picked


def _difference(measured: Measured, point: PointSummary) -> Significance | None:
    run, samples = measured.experiment.run, measured.experiment.samples
    baseline, own = (samples[samples["point_id"] == one.point_id] for one in (measured.baseline, point))
    return quality_significance(run.metric, run.seed, baseline, own, run.texts_expected)


def _nothing_qualifies(measured: Measured, max_drops: Sequence[float]) -> RunError:
    scores = [point.quality.value for point in measured.summary.points[1:] if point.quality is not None]
    vanilla = measured.baseline.quality
    nearest = "" if vanilla is None or not scores else f" (vanilla {vanilla.value:.2f}, the best {max(scores):.2f})"
    problem = f"no point of the grid comes that close to vanilla on the validation texts{nearest}"
    fix = f"widen the grid, or allow a larger drop; all figures are in {measured.experiment.directory}"
    return RunError("--max-drop", ",".join(f"{drop:g}" for drop in max_drops), problem, fix)


def _warnings(first: Measured, second: Measured, choices: Sequence[Choice], shared: int) -> tuple[str, ...]:
    chosen = {choice.on_validation.point_id: choice.on_validation for choice in choices}
    found = [f"validation: {line}" for line in caveats(first.experiment, list(chosen.values()))]
    partial = sum(point.texts < first.baseline.texts for point in first.summary.points[1:])
    if partial:
        found.append(f"validation: {partial} points failed on some texts and could not be chosen")
    found += [f"test: {line}" for line in second.summary.warnings]
    if shared:
        found.append(f"test: texts that are validation texts too, before sampling: {shared}")
    return tuple(found)
