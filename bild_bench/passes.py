"""One text taken through all points of an experiment."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from bild_bench.data import Example
from bild_bench.decoding.picking import Greedy, Picker
from bild_bench.decoding.sampling import Sampler, seed_of
from bild_bench.measure.divergence import with_divergence
from bild_bench.measure.timing import Outcome, time_text
from bild_bench.models.pair import Source
from bild_bench.plan import Point
from bild_bench.recording import Pass, point_ids, sample_record, utc_now
from bild_bench.schema import RunRecord, SampleRecord
from bild_bench.setup import Setup


def warm_up(setup: Setup) -> tuple[float, Source]:
    """Decode some texts and drop them: the seconds that the last one took by all points and draws, and its source."""
    usable = [example for example in setup.examples.examples if example.source.strip()]
    warmup, limit = setup.request.warmup, setup.task.source_limit
    sources = [setup.pair.tokenise(example.source, limit) for example in usable[: max(1, warmup)]]
    seconds = 0.0
    for source in sources[:warmup]:
        start = time.perf_counter()
        time_text(setup.pair, source, setup.points, setup.limits, _pickers(setup, 0))
        seconds = (time.perf_counter() - start) * setup.request.draws
    return seconds, sources[-1]


def decode_text(
    example: Example, run: RunRecord, setup: Setup, kept: Sequence[SampleRecord], process: str
) -> list[SampleRecord]:
    """One text by all points and draws, each time in an order drawn from the seed, the text and the draw alone.

    Rows that are kept from an earlier experiment are not decoded again; points that have none are decoded beside the
    baseline, since only rows of one process are paired.
    """
    source: Source | None = None
    if example.source.strip():
        source = setup.pair.tokenise(example.source, setup.task.source_limit)
    ids = point_ids(setup)
    dropped = {point["point_id"] for point in run.points if "pruned" in point}
    there = {(sample.point_id, sample.draw) for sample in kept}
    samples = list(kept)
    for draw in range(setup.request.draws):
        order = [point for point in setup.points if ids[point] not in dropped and (ids[point], draw) not in there]
        if not order:
            continue
        order += [point for point in setup.points if point.role == "baseline" and point not in order]
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
