"""Points x texts: every text is decoded by all points in shuffled order, and kept as soon as it is done.

`run` is an experiment of one point and its baseline; a sweep is one of many points.
"""

from __future__ import annotations

import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bild_bench import results
from bild_bench.data import Example
from bild_bench.decoding.picking import Greedy, Picker
from bild_bench.decoding.sampling import Sampler, seed_of
from bild_bench.errors import DataError, RunError, UsageError
from bild_bench.measure.divergence import with_divergence
from bild_bench.measure.environment import busy_reason, describe_environment, peak_memory
from bild_bench.measure.timing import Outcome, calibrate, time_text
from bild_bench.models.pair import Source
from bild_bench.parquet import writing
from bild_bench.plan import Point
from bild_bench.recording import Pass, point_ids, run_record, sample_record, utc_now
from bild_bench.schema import RunRecord, SampleRecord
from bild_bench.setup import Announce, Request, Setup, choose, prepare, silent

_LONG_START_SECONDS = 60.0

Track = Callable[[Iterable[Example], int, int], Iterable[Example]]


def untracked(texts: Iterable[Example], done: int, total: int) -> Iterable[Example]:
    """A `Track` that shows nothing."""
    return texts


def run_experiment(
    request: Request, points: Sequence[Point], *, announce: Announce = silent, track: Track = untracked
) -> Path:
    """Decode all texts by all points and record them; go on where an earlier run of the same was stopped.

    Args:
        request: task, data, pair and machine settings.
        points: the baseline first, if there is one.
        announce: called with one line on what happens, before something slow.
        track: wraps the texts to do, with how many are done and how many there are, to show progress.

    Returns:
        The experiment's directory, complete.

    Raises:
        UsageError, DataError: before anything is decoded.
        RunError: the results cannot be written, or not one text could be decoded.
    """
    task, choice = choose(request, points)
    _require_writable(request.results if request.out is None else request.out)
    setup = prepare(request, points, task, choice, announce)
    run = run_record(setup)
    directory = _directory(request, run)
    with results.lock(directory):
        run = _open(directory, run, announce)
        if run.status == "running":
            _decode_texts(directory, run, setup, announce, track)
    if not results.read(directory).samples["status"].eq("ok").any():
        raise RunError(
            "texts", run.texts, "not one of them could be decoded", f"see the errors in {directory}/samples.parquet"
        )
    return directory


def _require_writable(folder: Path) -> None:
    """Better now than after the first text."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def _directory(request: Request, run: RunRecord) -> Path:
    if request.out is not None:
        return request.out
    unfinished = results.find_unfinished(request.results, run.experiment_id)
    if unfinished is not None:
        return unfinished
    methods = "-".join(dict.fromkeys(point["method"] for point in run.points))
    return results.new_directory(request.results, f"{run.data_label}-{run.pair_label}-{methods}")


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


def _decode_texts(directory: Path, run: RunRecord, setup: Setup, announce: Announce, track: Track) -> None:
    finished, process = results.finished_texts(directory), uuid.uuid4().hex[:12]
    todo = [example for example in setup.examples.examples if example.id not in finished]
    calibration = _warm_up(setup, len(todo), announce) if todo else run.calibration
    for example in track(todo, len(finished), run.texts):
        results.write_text(directory, example.id, _decode_text(example, run, setup, process))
    device = setup.pair.device
    after = describe_environment(device) | peak_memory(device)
    after["busy"] = busy_reason(run.environment["load"], _number(after["load"]), torch.get_num_threads())
    results.complete(directory, replace(run, environment_after=after, calibration=calibration))


def _warm_up(setup: Setup, todo: int, announce: Announce) -> dict[str, Any]:
    """Decode some texts and drop them, then calibrate; says how long the rest will take where that is long."""
    usable = [example for example in setup.examples.examples if example.source.strip()]
    if not usable:
        raise DataError("--data", setup.examples.label, "every source text is empty", "check --source-column")
    warmup, limit = setup.request.warmup, setup.task.source_limit
    sources = [setup.pair.tokenise(example.source, limit) for example in usable[: max(1, warmup)]]
    seconds = 0.0
    for source in sources[:warmup]:
        start = time.perf_counter()
        time_text(setup.pair, source, setup.points, setup.limits, _pickers(setup, 0))
        seconds = (time.perf_counter() - start) * setup.request.draws
    calibration = calibrate(setup.pair, sources[-1], setup.limits)
    if seconds * todo > _LONG_START_SECONDS:
        announce(f"about {seconds * todo / 60:.0f} min for {todo} texts, judged by the last warm-up text")
    return calibration


def _decode_text(example: Example, run: RunRecord, setup: Setup, process: str) -> list[SampleRecord]:
    """One text by all points and draws, each time in an order drawn from the seed, the text and the draw alone."""
    source: Source | None = None
    if example.source.strip():
        source = setup.pair.tokenise(example.source, setup.task.source_limit)
    ids = point_ids(setup)
    samples = []
    for draw in range(setup.request.draws):
        order = list(setup.points)
        random.Random(f"{run.seed}/{example.id}/{draw}").shuffle(order)
        taken = Pass(example, source, draw, process, utc_now())
        outcomes = _outcomes(taken, order, run.seed, setup)
        samples += [sample_record(outcome, taken, run, setup, ids[outcome.point]) for outcome in outcomes]
    return samples


def _outcomes(taken: Pass, order: list[Point], seed: int, setup: Setup) -> list[Outcome]:
    if taken.source is None:
        return [Outcome(point, place, error="the source text is empty") for place, point in enumerate(order)]
    pickers = _pickers(setup, seed_of(seed, taken.example.id, taken.draw))
    outcomes = time_text(setup.pair, taken.source, order, setup.limits, pickers)
    drawn = setup.request.sampling is not None
    return outcomes if drawn else with_divergence(setup.pair, taken.source, outcomes, setup.limits)


def _pickers(setup: Setup, seed: int) -> Callable[[], Picker]:
    """Greedy search, or draws with the same random numbers for every point."""
    sampling = setup.request.sampling
    return Greedy if sampling is None else lambda: Sampler(sampling, seed)


def _difference(there: RunRecord, here: RunRecord) -> str:
    """The first field in which two experiments differ, for a person."""
    names = ("task", "data_label", "split", "metric", "pair_label", "seed", "texts")
    settings = ("device", "dtype", "session", "warmup", "prefix")
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
