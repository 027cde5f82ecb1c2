"""Runs the study: python -m study.run --data DIR --models DIR. Takes half an hour of an idle machine of 2 cores."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.ending import ended
from bild_bench import results
from bild_bench.errors import DataError, RunError, UsageError
from bild_bench.experiment import run_experiment
from bild_bench.measure.environment import busy_reason, describe_environment, load_average
from bild_bench.plan import Point, with_baseline
from bild_bench.report.summary import summarise
from bild_bench.results import Experiment
from bild_bench.setup import Request
from study import drift, operations
from study.choose import Chosen, choose
from study.rows import Row, rows_of, save
from study.trials import Trial, located, trials

ROWS = "study.parquet"
# What a trial needs below MODELS, and where it comes from: recipes/study_models.sh.
MODELS = ("large", "small", "aligned", "early-exit", "calm")

Measured = tuple[Trial, Sequence[Point], Experiment]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or the error's after one line; 130 after Ctrl-C."""
    given = _options().parse_args(arguments)
    return ended(lambda: run(given))


def run(given: argparse.Namespace) -> Path:
    """Run all trials, or go on with them, and write their rows; returns the Parquet file.

    With --only some are run and nothing is written but their experiments, whose folder is returned.

    Raises:
        RunError: the machine is busy, or a trial failed.
        UsageError, DataError: texts or models are missing.
    """
    _check(given)
    busy = busy_reason(load_average(), None, 1)
    if busy is not None and not given.force:
        raise RunError("machine", "load", busy.rstrip("."), "wait until it is idle, or measure all the same: --force")
    wanted = _wanted(given.only)
    chosen: dict[str, tuple[Chosen, ...]] = {}
    rows: list[Row] = []
    measured: list[Measured] = []
    for trial in trials():
        if trial.name not in wanted:
            continue
        _announce(f"{trial.name}: validation")
        chosen[trial.name] = _chosen(trial, given)
        taken = (*chosen[trial.name], *_followed(trial, chosen))
        points = with_baseline(list(dict.fromkeys([*(one.point for one in taken), *trial.fixed])))
        _announce(f"{trial.name}: {len(points)} points on the test texts")
        experiment = _experiment(trial, points, "test", given)
        rows += rows_of(trial, points, taken, experiment)
        measured.append((trial, points, experiment))
    deviation = _run_to_run(measured, given)
    rows = [drift.widened(row, deviation) for row in rows]
    if given.only:
        return Path(given.out)
    environment = describe_environment("cpu") | {"busy": busy_reason(None, load_average(), 1), "threads": 1}
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    path = Path(given.out) / ROWS
    save(path, rows, date, environment | {"options": {"limit": given.limit}, "run_to_run": deviation})
    _announce("operations")
    operations.run(given, chosen, path.with_name(operations.FILE))
    return path


def _run_to_run(measured: Sequence[Measured], given: argparse.Namespace) -> dict[str, float]:
    """Every trial again on a part of its test texts, after all others, and what that says of their speed-ups."""
    found = [[experiment] for _, _, experiment in measured]
    for number in range(1, drift.AGAIN + 1):
        for runs, (trial, points, _) in zip(found, measured, strict=True):
            _announce(f"{trial.name}: again, {number} of {drift.AGAIN}")
            runs.append(_experiment(trial, points, f"again-{number}", given))
    return drift.run_to_run(found)


def _wanted(only: Sequence[str]) -> set[str]:
    """Names of the trials to run: all, or some with those that they follow."""
    named = [trial for trial in trials() if not only or trial.name in only]
    return {name for trial in named for name in (trial.name, *(trial.follows or ()))}


def _check(given: argparse.Namespace) -> None:
    if given.limit is not None and given.limit < 2:
        raise UsageError("--limit", given.limit, "must be 2 or more", "leave it out for the whole study")
    for trial in trials():
        for name in (trial.texts.validation, trial.texts.test):
            if not (given.data / name).is_file():
                raise DataError("--data", str(given.data), f"lacks {name}", "give the folder that holds it")
    for model in MODELS:
        if not (given.models / model / "config.json").is_file():
            raise DataError("--models", str(given.models), f"lacks {model}", "train it: recipes/study_models.sh")


def _chosen(trial: Trial, given: argparse.Namespace) -> tuple[Chosen, ...]:
    if not trial.candidates:
        return ()
    points = with_baseline(trial.candidates)
    summary = summarise(_experiment(trial, points, "validation", given))
    return choose(dict(zip(points, summary.points, strict=True)))


def _followed(trial: Trial, chosen: dict[str, tuple[Chosen, ...]]) -> list[Chosen]:
    follows = trial.follows if trial.follows is not None else {}
    return [one for name, rules in follows.items() for one in chosen[name] if one.rule in rules]


def _experiment(trial: Trial, points: Sequence[Point], side: str, given: argparse.Namespace) -> Experiment:
    """A trial's points on validation texts, test texts, or some of these again; one that is complete is only read."""
    limit = {"validation": trial.validation_limit, "test": trial.test_limit}.get(side, drift.TEXTS)
    if given.limit is not None:
        limit = min(given.limit, limit) if limit is not None else given.limit
    request = Request(
        task="custom",
        data=str(given.data / (trial.texts.validation if side == "validation" else trial.texts.test)),
        limit=limit,
        metric=trial.texts.metric,
        large=located(trial.large, given.models),
        smalls=tuple(located(small, given.models) for small in trial.smalls),
        prefix=trial.texts.prefix,
        threads=1,
        session=trial.session,
        sampling=trial.sampling,
        draws=max(1, trial.draws),
        out=given.out / trial.name / side,
        command=shlex.join(["python", "-m", "study.run", "--data", str(given.data), "--models", str(given.models)]),
    )
    return results.read(run_experiment(request, points, announce=_announce))


def _announce(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m study.run", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with multi30k/ and debian_synopsis/")
    parser.add_argument("--models", type=Path, required=True, help=f"folder with {', '.join(MODELS)}")
    parser.add_argument("--out", type=Path, default=Path("results/study"))
    names = [trial.name for trial in trials()]
    parser.add_argument("--only", nargs="+", choices=names, default=[], help="run these now and the rest later")
    parser.add_argument("--limit", type=int, default=None, help="texts at most: for trying it out")
    parser.add_argument("--force", action="store_true", help="measure on a busy machine too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
