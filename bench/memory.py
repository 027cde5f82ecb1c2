"""Whether memory grows with the number of texts: resident memory while the embedded pair decodes thousands of them."""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, holds, missing
from bench.shapes import Announce
from bild_bench.data import load_examples
from bild_bench.errors import DataError
from bild_bench.measure.timing import time_text
from bild_bench.models.choice import choose_pair
from bild_bench.models.pair import load_pair
from bild_bench.plan import make_point
from bild_bench.tasks import load_task

GROWTH, SLOPE = "memory growth", "memory growth in 1,000 texts"
# What an allocator's own housekeeping may take; 1 KB kept a text would be 8 MB of 10,000 texts.
MOST_GROWTH_MB = 5.0
# The fast session is the slower one; a fifth of the texts is enough to see whether it keeps any.
SESSIONS = {"native": 1, "fast": 5}
_LEAST_SAMPLES = 6
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True)
class Sample:
    """Resident memory, in bytes, after this many texts."""

    texts: int
    resident: int


def memory_figures(texts: int, announce: Announce) -> list[Figure]:
    """Growth and slope of this process's resident memory, one series a kind of session.

    Args:
        texts: decoded by the native session; the others decode fewer.
        announce: called with one line before something slow.
    """
    rows: list[Figure] = []
    for session, share in SESSIONS.items():
        try:
            decode = _decoder(session, announce)
        except DataError as error:
            rows.append(_missing(session, str(error)))
            continue
        count = texts // share
        announce(f"memory: {count:,} texts by the {session} session")
        rows += memory_rows(session, series(decode, count, resident_memory))
    return rows


def series(decode: Callable[[], str | None], texts: int, resident: Callable[[], int | None]) -> list[Sample] | str:
    """Samples after a tenth of the texts and then every twentieth; or, in one line, why there are none.

    Args:
        decode: decodes the next text; returns what went wrong.
        texts: to decode.
        resident: bytes, None where the system does not say.
    """
    first, every = max(1, texts // 10), max(1, texts // 20)
    samples = []
    for done in range(1, texts + 1):
        problem = decode()
        if problem is not None:
            return f"text {done:,} failed: {problem}"
        if done >= first and (done - first) % every == 0:
            held = resident()
            if held is None:
                return "this system does not say how much memory a process holds (Linux does)"
            samples.append(Sample(done, held))
    return samples


def memory_rows(session: str, samples: Sequence[Sample] | str) -> list[Figure]:
    """Growth (the median of the last three samples less that of the first three) and slope (least squares), in MB.

    Args:
        session: its kind.
        samples: six at least, or why there are none.
    """
    if isinstance(samples, str):
        return [_missing(session, samples)]
    if len(samples) < _LEAST_SAMPLES:
        return [_missing(session, f"{len(samples)} samples tell no growth: add texts (--memory-texts)")]
    held = [sample.resident / 1e6 for sample in samples]
    growth = statistics.median(held[-3:]) - statistics.median(held[:3])
    line = statistics.linear_regression([sample.texts / 1000 for sample in samples], held)
    note = (
        f"resident {held[0]:.1f} MB after {samples[0].texts:,} texts, {held[-1]:.1f} MB after {samples[-1].texts:,}; "
        f"{len(held)} samples from {min(held):.1f} to {max(held):.1f} MB"
    )
    return [
        _row(GROWTH, session, growth, MOST_GROWTH_MB, samples[-1].texts, note),
        _row(SLOPE, session, line.slope, None, samples[-1].texts, "least squares over the same samples"),
    ]


def resident_memory() -> int | None:
    """Bytes of main memory that this process holds now; None where there is no Linux /proc."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _decoder(session: str, announce: Announce) -> Callable[[], str | None]:
    """Decodes the sample's next text as an experiment does (tokenised, encoded, by BiLD), and says what went wrong."""
    task = load_task("iwslt17")
    pair = load_pair(choose_pair(task.name, task.kind), device="cpu", session=session, announce=announce)
    examples = load_examples(task, "embedded", None, None, 0, announce).examples
    points, limits = [make_point("bild", {})], pair.limits(task.target_limit)
    sources = itertools.cycle([example.source for example in examples if example.source.strip()])

    def decode() -> str | None:
        return time_text(pair, pair.tokenise(next(sources), task.source_limit), points, limits)[0].error

    return decode


def _row(name: str, session: str, value: float, target: float | None, texts: int, note: str) -> Figure:
    reached = None if target is None else holds(value, target, "at most")
    return Figure(name, "embedded", _told(session), value, None, None, target, "at most", reached, "MB", texts, note)


def _missing(session: str, reason: str) -> Figure:
    return missing(GROWTH, "embedded", _told(session), reason, target=MOST_GROWTH_MB, bound="at most")


def _told(session: str) -> str:
    return f"BiLD, {session} session"
