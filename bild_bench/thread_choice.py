"""How many CPU threads an experiment computes on, where nobody said: those with which its own models are fastest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

from bild_bench.decoding.records import Limits
from bild_bench.measure.machine import cpu_quota, usable_cores

if TYPE_CHECKING:
    from bild_bench.models.pair import Encoded, Pair

# More threads are a risk: a program that wants one of their cores slows all of them down. So they must pay.
_MUST_GAIN = 0.9
_ROUNDS, _STEPS, _BLOCK = 5, 4, 4
# The least that a count is timed for in a round: a thread that waits for a busy core loses milliseconds at a time.
_LEAST_SECONDS = 0.02
# Large models show after one round which count is faster, and need not be waited for.
_SECONDS = 3.0


@contextmanager
def computing_on(threads: int | None) -> Iterator[None]:
    """So many threads within, as before behind it: what else a notebook computes must not go on with them.

    Args:
        threads: None leaves them as they are.
    """
    import torch

    before = torch.get_num_threads()
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        yield
    finally:
        torch.set_num_threads(before)


def candidates(cores: int | None, quota: float | None = None) -> list[int]:
    """1, 2, 4, … up to the usable cores, and these.

    Args:
        cores: None where they are not known.
        quota: cores' worth of time that a container grants; more threads are stopped together when it is used up.
    """
    most = 1 if cores is None else cores
    if quota is not None:
        most = max(1, min(most, int(quota)))
    return sorted({most, *(2**power for power in range(most.bit_length()) if 2**power <= most)})


def pick(milliseconds: Mapping[int, float]) -> int:
    """The count with the least time; a greater one only where it takes at most nine tenths of the smaller one's."""
    best, *more = sorted(milliseconds)
    for count in more:
        if milliseconds[count] <= _MUST_GAIN * milliseconds[best]:
            best = count
    return best


def choose_threads(
    pair: Pair,
    keys: Sequence[str],
    text: str,
    limits: Limits,
    *,
    counts: Sequence[int] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float] | None:
    """Milliseconds that a few decoding steps of all models take, by number of threads; the fastest count is set.

    Every round times each count, so that drift hits them alike, and the median of the rounds counts. The steps are
    a few single tokens of every model and one block, as they occur when drafts are verified. Short ones are repeated
    for 20 ms, whose mean counts: a thread that is kept waiting now and then shows in no single step.

    Args:
        keys: of the pair's models.
        text: a source to decode from.
        counts: to choose from; None for `candidates` of this machine.
        clock: seconds; for tests.

    Returns:
        None where there is nothing to choose: one core, or a GPU.
    """
    import torch

    counts = candidates(usable_cores(), cpu_quota()) if counts is None else counts
    if pair.device != "cpu" or len(counts) < 2:
        return None
    source = pair.tokenise(text, limits.max_tokens)
    encoded = {key: pair.encode(key, source) for key in keys}
    took: dict[int, list[float]] = {count: [] for count in counts}
    began = clock()
    # The first round warms up what a count needs, such as its threads.
    for number in range(_ROUNDS + 1):
        for count in counts:
            torch.set_num_threads(count)
            start, passes = clock(), 0
            while passes == 0 or (number > 0 and clock() - start < _LEAST_SECONDS):
                for key in keys:
                    _steps(pair, key, encoded[key], limits)
                passes += 1
            if number > 0:
                took[count].append((clock() - start) / passes)
        if number > 0 and clock() - began > _SECONDS:
            break
    found = {count: 1000 * median(seconds) for count, seconds in took.items()}
    torch.set_num_threads(pick(found))
    return found


def set_fastest(pair: Pair, text: str, limits: Limits) -> dict[int, float] | None:
    """`choose_threads` over all models of a pair; the threads stay as they are where the text cannot be decoded.

    Returns:
        What was timed; None where nothing was.
    """
    import torch

    before = torch.get_num_threads()
    try:
        return choose_threads(pair, list(pair.models), text, limits)
    # That is the text's error, told when it is decoded, and no reason to end here.
    except Exception:
        torch.set_num_threads(before)
        return None


def _steps(pair: Pair, key: str, encoded: Encoded, limits: Limits) -> None:
    """Any tokens will do: what a step costs depends on their number."""
    session = pair.session(key, encoded, limits)
    for _ in range(_STEPS):
        session.extend([limits.start_id]).argmax()
    session.extend([limits.start_id] * _BLOCK).argmax()
