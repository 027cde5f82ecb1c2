"""What to do after an experiment, as commands to paste: quoted for a shell, every option spelled out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench.data_files import locate
from bild_bench.errors import BildBenchError
from bild_bench.held_out import Texts
from bild_bench.models.choice import names_of
from bild_bench.plan import Point
from bild_bench.setup import Request
from bild_bench.tasks import Task

if TYPE_CHECKING:
    from bild_bench.decoding.picking import Sampling
    from bild_bench.report.summary import PointSummary

# Of a request: those with a form of their own, and those that belong to one experiment only.
_APART = ("task", "smalls", "sampling", "budget", "prune", "extend", "out", "results", "command")


@dataclass(frozen=True)
class Next:
    """A command and, in a few words, what it does."""

    what: str
    command: str


def run_command(request: Request, point: Point) -> str:
    """The `bild-bench run` that decodes this point, and vanilla, over the request's texts into a new directory."""
    small = request.small
    if point.small is not None:
        small = request.smalls[names_of(request.smalls).index(point.small)]
    asked = replace(request, small=small if "small" in point.method.uses else None, smalls=())
    words = ["bild-bench", "run", "--task", request.task, "--mode", point.method.name]
    words += [*_settings([point]), *_request(asked)]
    return shlex.join([*words, *([] if request.sampling is None else _sampling(request.sampling))])


def after_sweep(
    directory: Path, request: Request, points: Sequence[Point], summaries: Sequence[PointSummary], task: Task, data: str
) -> list[Next]:
    """The report, the best point alone, and the choice on validation texts where they are there.

    Args:
        points, summaries: those of the experiment, in the same order.
        data: where its texts are from: "embedded", "hub" or a path.
    """
    page = shlex.join(["bild-bench", "report", str(directory), "--html", "report.html"])
    found = [Next("show all points as a page", page)]
    best = _best(points, summaries)
    if best is not None:
        point, loss = best
        found.append(Next(f"run the fastest point {loss} on these texts", run_command(request, point)))
    tried = [point for point in points if point.role != "baseline"]
    plain = request.sampling is None and not request.smalls
    if plain and any(point.method.name != "vanilla" for point in tried) and _has_validation(task, data):
        command = _tune_command(request, tried)
        if command is not None:
            found.append(Next("choose thresholds on validation texts and report them on test texts", command))
    return found


def after_tune(request: Request, test: Texts, named: Sequence[tuple[str, Point]]) -> list[Next]:
    """The run of every chosen point over the test texts, each once.

    Args:
        named: what each point was chosen for, and the point.
    """
    asked = replace(request, data=test.data, split=test.split, limit=test.limit)
    names: dict[str, list[str]] = {}
    for name, point in named:
        names.setdefault(run_command(asked, point), []).append(name)
    return [Next(f"run the point chosen for {' and '.join(found)}", command) for command, found in names.items()]


def _best(points: Sequence[Point], summaries: Sequence[PointSummary]) -> tuple[Point, str] | None:
    """The fastest point at no loss, else within one point; None where none is faster than vanilla."""
    from bild_bench.tuning import choose_point

    if not any(summary.role == "baseline" for summary in summaries):
        return None
    for drop, loss in ((0.0, "at no loss"), (1.0, "within 1 point of vanilla")):
        found = choose_point(summaries, drop)
        if found is not None and found.speedup_decoding is not None and found.speedup_decoding.value >= 1:
            return points[[summary.point_id for summary in summaries].index(found.point_id)], loss
    return None


def _has_validation(task: Task, data: str) -> bool:
    if data == "hub":
        return True
    if not Path(data).is_dir():
        return False
    try:
        for split in ("validation", "test"):
            locate(Path(data), task, split)
    except BildBenchError:
        return False
    return True


def _tune_command(request: Request, points: Sequence[Point]) -> str | None:
    """The same grid for `tune`; None where the command line cannot say it."""
    for point in points:
        alike = [other.settings for other in points if other.method is point.method]
        names = [field.name for field in fields(point.settings)]
        if any(len({getattr(one, name) is None for one in alike}) > 1 for name in names):
            return None
        if any(len({getattr(one, name) for one in alike}) > 1 for name in names if _is_flag(point, name)):
            return None
    words = ["bild-bench", "tune", "--task", request.task]
    words += ["--mode", ",".join(dict.fromkeys(point.method.name for point in points))]
    limit = [] if request.limit is None else ["--test-limit", str(request.limit)]
    return shlex.join([*words, *_settings(points), *_request(replace(request, split=None, draws=1)), *limit])


def _is_flag(point: Point, name: str) -> bool:
    return isinstance(getattr(point.settings, name), bool)


def _settings(points: Sequence[Point]) -> list[str]:
    """Options for the points' settings: numbers always, words and flags where they are not the default."""
    values: dict[str, dict[str, None]] = {}
    for point in points:
        usual = type(point.settings)()
        for field in fields(point.settings):
            value = getattr(point.settings, field.name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number or value != getattr(usual, field.name):
                values.setdefault(field.name, {})["" if value is True else _number(value)] = None
    words = []
    for name, texts in values.items():
        given = ",".join(texts)
        words += [_option(name), given] if given else [_option(name)]
    return words


def _request(request: Request) -> list[str]:
    """Options for all of a request that is not the default."""
    words: list[str] = []
    for field in fields(Request):
        value = getattr(request, field.name)
        if field.name in _APART or value == field.default:
            continue
        if isinstance(value, bool):
            words.append(_option(field.name) if value else f"--no-{field.name}")
        elif str(value).startswith("-"):
            words.append(f"{_option(field.name)}={value}")
        else:
            words += [_option(field.name), str(value)]
    return words


def _sampling(sampling: Sampling) -> list[str]:
    given: Mapping[str, Any] = {name: getattr(sampling, name) for name in ("temperature", "top_k", "top_p")}
    words = ["--sample"]
    for name, value in given.items():
        if value is not None:
            words += [_option(name), _number(value)]
    return words


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _number(value: Any) -> str:
    """As a person types it: 2 for 2.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
