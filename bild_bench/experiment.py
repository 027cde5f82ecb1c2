"""Points x texts: every text is decoded by all points in shuffled order, and kept as soon as it is done.

`run` is an experiment of one point and its baseline; a sweep is one of many points.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from bild_bench import directories, results
from bild_bench.data import Example
from bild_bench.errors import RunError, UsageError
from bild_bench.extending import kept_samples
from bild_bench.measure.environment import busy_reason, describe_environment, peak_memory
from bild_bench.parquet import writing
from bild_bench.passes import decode_text, warm_up
from bild_bench.plan import Point
from bild_bench.pruning import Pruner
from bild_bench.recording import run_record
from bild_bench.schema import RunRecord, SampleRecord
from bild_bench.setup import Announce, Request, Setup, choose, prepare, silent
from bild_bench.thread_choice import computing_on
from bild_bench.watch import Watch

Track = Callable[[Iterable[Example], int, int], Iterable[Example]]
Observe = Callable[[RunRecord, Sequence[SampleRecord]], None]


def unobserved(run: RunRecord, samples: Sequence[SampleRecord]) -> None:
    """An `Observe` that does nothing."""


def untracked(texts: Iterable[Example], done: int, total: int) -> Iterable[Example]:
    """A `Track` that shows nothing."""
    return texts


@computing_on(None)
def run_experiment(
    request: Request,
    points: Sequence[Point],
    *,
    announce: Announce = silent,
    track: Track = untracked,
    observe: Observe = unobserved,
) -> Path:
    """Decode all texts by all points and record them; go on where an earlier run of the same was stopped.

    Args:
        request: task, data, pair and machine settings.
        points: the baseline first, if there is one.
        announce: called with one line on what happens, before something slow.
        track: wraps the texts to do, with how many are done and how many there are, to show progress.
        observe: called with the run's record and each finished text's samples, between texts.

    Returns:
        The experiment's directory: complete, unless its time budget was used up before.

    Raises:
        UsageError, DataError: before anything is decoded.
        RunError: the results cannot be written, or not one text could be decoded.
    """
    started = time.monotonic()
    task, choice = choose(request, points)
    if request.extend is not None:
        results.read_run(request.extend)
    if request.out is None:
        _require_writable(request.results, "results")
    else:
        _require_writable(request.out, "--out")
    setup = prepare(request, points, task, choice, announce)
    run = _as_begun(setup, run_record(setup))
    if setup.threads_timed is not None:
        announce(f"threads: {run.environment['threads']}, the fastest of {', '.join(map(str, setup.threads_timed))}")
    directory = _directory(request, run)
    with directories.lock(directory):
        run = _open(directory, run, announce)
        if run.status == "running":
            deadline = None if request.budget is None else started + request.budget
            _decode_texts(directory, run, setup, deadline, announce, track, observe)
        elif not (directory / results.SUMMARY).exists():
            results.write_summary(results.read(directory))
    samples = results.read(directory).samples
    # Without any row the time was up before the first text.
    if len(samples) and not samples["status"].eq("ok").any():
        raise RunError(
            "texts", run.texts, "not one of them could be decoded", f"see the errors in {directory}/samples.parquet"
        )
    return directory


@computing_on(None)
def estimate(request: Request, points: Sequence[Point], announce: Announce = silent) -> tuple[int, float]:
    """How many texts an experiment has, and about how many seconds it takes, judged by its warm-up texts.

    Raises:
        UsageError, DataError: as `run_experiment`.
    """
    # Without a warm-up there would be nothing to judge by.
    request = replace(request, warmup=max(1, request.warmup))
    setup = prepare(request, points, *choose(request, points), announce)
    seconds, _ = warm_up(setup)
    texts = len(setup.examples.examples)
    return texts, seconds * texts


def _require_writable(folder: Path, field: str) -> None:
    """Better now than after the first text; nothing is left behind, since the rest may still be refused."""
    with writing(folder, field):
        there = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(place))
        with tempfile.TemporaryFile(dir=there):
            pass


def _directory(request: Request, run: RunRecord) -> Path:
    if request.out is not None:
        with writing(request.out, "--out"):
            request.out.mkdir(parents=True, exist_ok=True)
        return request.out
    unfinished = results.find_unfinished(request.results, run.experiment_id)
    if unfinished is not None:
        return unfinished
    methods = "-".join(dict.fromkeys(point["method"] for point in run.points))
    return directories.new_directory(request.results, f"{run.data_label}-{run.pair_label}-{methods}")


def _as_begun(setup: Setup, run: RunRecord) -> RunRecord:
    """The record, with the threads that an unfinished experiment of the same began with where they were chosen."""
    request, chosen = setup.request, torch.get_num_threads()
    for count in (chosen, *(setup.threads_timed or ())):
        torch.set_num_threads(count)
        tried = run if count == chosen else run_record(setup)
        if request.out is None:
            begun = results.find_unfinished(request.results, tried.experiment_id) is not None
        else:
            there = request.out / results.RUN
            begun = there.exists() and results.read_run(request.out).experiment_id == tried.experiment_id
        if begun:
            return tried
    torch.set_num_threads(chosen)
    return run


def _open(directory: Path, run: RunRecord, announce: Announce) -> RunRecord:
    """Start the experiment in this directory, or go on with the same one that is there."""
    if not (directory / results.RUN).exists():
        results.create(directory, run)
        return run
    there = results.read(directory).run
    if there.experiment_id != run.experiment_id:
        difference = _difference(there, run)
        raise UsageError("--out", str(directory), f"holds another experiment: {difference}", "choose another directory")
    if there.status == "complete":
        announce(f"{directory} is complete already: nothing is decoded, its figures follow")
    else:
        announce(f"resuming {directory}: {len(results.finished_texts(directory))} of {run.texts} texts are there")
    return there


def _decode_texts(
    directory: Path,
    run: RunRecord,
    setup: Setup,
    deadline: float | None,
    announce: Announce,
    track: Track,
    observe: Observe,
) -> None:
    finished, process = results.finished_texts(directory), uuid.uuid4().hex[:12]
    todo = [example for example in setup.examples.examples if example.id not in finished]
    kept = {} if setup.request.extend is None else kept_samples(setup.request.extend, run)
    if setup.request.extend is not None:
        rows = sum(len(samples) for samples in kept.values())
        announce(f"{rows} rows of {len(kept)} texts are taken over from {setup.request.extend}")
    watch = Watch(directory, setup, len(todo), announce)
    if todo:
        run = watch.begin(run)
    pruner = Pruner(run) if setup.request.prune else None
    longest = 0.0
    for example in track(todo, len(finished), run.texts):
        began = time.monotonic()
        if deadline is not None and began + longest > deadline:
            announce(f"time limit reached with {len(finished)} of {run.texts} texts; the same command resumes")
            return
        watch.before_text()
        samples = decode_text(example, run, setup, kept.get(example.id, []), process)
        results.write_text(directory, example.id, samples)
        finished.add(example.id)
        if pruner is not None:
            run = _pruned(directory, run, pruner, samples, announce)
        run = watch.after_text(run)
        observe(run, samples)
        longest = max(longest, time.monotonic() - began)
    device = setup.pair.device
    after = run.environment_after | describe_environment(device) | peak_memory(device)
    after["busy"] = busy_reason(run.environment["load"], _number(after["load"]), torch.get_num_threads())
    results.complete(directory, replace(run, environment_after=after))


def _pruned(
    directory: Path, run: RunRecord, pruner: Pruner, samples: Sequence[SampleRecord], announce: Announce
) -> RunRecord:
    """The run with points marked that are beyond reach of the front from now on."""
    pruner.add(samples)
    running = [point["point_id"] for point in run.points if "pruned" not in point]
    beaten = pruner.beaten(running)
    if not beaten:
        return run
    marked = [
        point | {"pruned": asdict(beaten[point["point_id"]])} if point["point_id"] in beaten else point
        for point in run.points
    ]
    run = replace(run, points=marked)
    results.update(directory, run)
    announce(f"dropped {len(beaten)} points that cannot reach the front; {len(running) - len(beaten)} go on")
    return run


def _difference(there: RunRecord, here: RunRecord) -> str:
    """The first field in which two experiments differ, for a person."""
    names = ("task", "data_label", "split", "metric", "pair_label", "seed", "texts")
    settings = ("device", "dtype", "session", "warmup", "prefix", "sampling", "draws")
    pairs = [
        *((name, getattr(there, name), getattr(here, name)) for name in names),
        *((name, there.configuration[name], here.configuration[name]) for name in settings),
        ("threads", there.environment["threads"], here.environment["threads"]),
        ("points", *([point["point"] for point in run.points] for run in (there, here))),
        *((name, getattr(there, name), getattr(here, name)) for name in ("machine", "code_version")),
    ]
    for name, before, now in pairs:
        if before != now:
            return f"{name} {before!r} there, {now!r} here"
    return "its texts or models differ"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
