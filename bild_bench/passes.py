"""One text taken through all points of an experiment."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from bild_bench.data import Example
from bild_bench.decoding.picking import Greedy, Picker
from bild_bench.decoding.sampling import Sampler, seed_of
from bild_bench.measure.divergence import with_divergence
from bild_bench.measure.timing import Outcome, in_one_line, time_text
from bild_bench.models.pair import Source
from bild_bench.plan import Point
from bild_bench.recording import Pass, point_ids, sample_record, utc_now
from bild_bench.schema import RunRecord, SampleRecord
from bild_bench.setup import Setup

# Beyond this many failures there is nothing to wait for: the texts' own rows tell why.
_MOST_TRIED = 20


def warm_up(setup: Setup) -> tuple[float, Source | None]:
    """Decode some texts and drop them; those that fail at every point are passed over.

    Returns:
        The seconds that the last one took by all points and draws, and a source of ordinary length that can be encoded
        (the last one decoded, where there was any); None where none can.
    """
    left, seconds, decoded = setup.request.warmup, 0.0, None
    for source in _sources(setup):
        if left == 0 and decoded is None:
            return seconds, source
        start = time.perf_counter()
        outcomes = time_text(setup.pair, source, setup.points, setup.limits, _pickers(setup, 0))
        if any(outcome.error is None for outcome in outcomes):
            seconds, decoded, left = (time.perf_counter() - start) * setup.request.draws, source, left - 1
        if left == 0:
            break
    return seconds, decoded


def _sources(setup: Setup) -> Iterator[Source]:
    """The first texts that the tokenizer takes and every encoder too."""
    usable = (example for example in setup.examples.examples if example.source.strip())
    for example in islice(usable, _MOST_TRIED + setup.request.warmup):
        try:
            source = setup.pair.tokenise(example.source, setup.task.source_limit)
            for key in setup.pair.models:
                setup.pair.encode(key, source)
        # Whatever a model raises is that text's failure; its own row will say so.
        except Exception:
            continue
        yield source


def decode_text(
    example: Example, run: RunRecord, setup: Setup, kept: Sequence[SampleRecord], process: str
) -> list[SampleRecord]:
    """One text by all points and draws, each time in an order drawn from the seed, the text and the draw alone.

    Rows that are kept from an earlier experiment are not decoded again; points that have none are decoded beside the
    baseline, since only rows of one process are paired.
    """
    source, fault = _tokenised(example, setup)
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
        outcomes = _outcomes(taken, fault, order, run.seed, setup)
        samples += [_recorded(outcome, taken, run, setup, ids[outcome.point]) for outcome in outcomes]
    return samples


def _tokenised(example: Example, setup: Setup) -> tuple[Source | None, str]:
    """The text's tokens; or None, and why there are none."""
    if not example.source.strip():
        return None, "the source cell is null" if example.null_source else "the source text is empty"
    try:
        return setup.pair.tokenise(example.source, setup.task.source_limit), ""
    except Exception as error:
        return None, in_one_line(error)


def _recorded(outcome: Outcome, taken: Pass, run: RunRecord, setup: Setup, point_id: str) -> SampleRecord:
    """The outcome as a row; what cannot be told as text is this row's failure."""
    try:
        return sample_record(outcome, taken, run, setup, point_id)
    except Exception as error:
        failed = Outcome(outcome.point, outcome.order, error=in_one_line(error))
        return sample_record(failed, taken, run, setup, point_id)


def _outcomes(taken: Pass, fault: str, order: list[Point], seed: int, setup: Setup) -> list[Outcome]:
    if taken.source is None:
        return [Outcome(point, place, error=fault) for place, point in enumerate(order)]
    pickers = _pickers(setup, seed_of(seed, taken.example.id, taken.draw))
    outcomes = time_text(setup.pair, taken.source, order, setup.limits, pickers)
    drawn = setup.request.sampling is not None
    return outcomes if drawn else with_divergence(setup.pair, taken.source, outcomes, setup.limits)


def _pickers(setup: Setup, seed: int) -> Callable[[], Picker]:
    """Greedy search, or draws with the same random numbers for every point."""
    sampling = setup.request.sampling
    return Greedy if sampling is None else lambda: Sampler(sampling, seed)
