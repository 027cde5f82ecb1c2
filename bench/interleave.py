"""One interleaved run: for each text all contestants in an order drawn anew, so that a slow minute is slow for all."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bild_bench.measure.clock import now

# Threads of an OpenMP runtime spin for some milliseconds after their work, on the next contestant's cores.
PAUSE = 0.05


@dataclass(frozen=True)
class Text:
    """A source text.

    Args:
        ids: source tokens, the end token included.
        references: what it is scored against; none for random ids.
    """

    ids: tuple[int, ...]
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """What a contestant needed for one text. tokens: what it generated, if anything."""

    seconds: float
    tokens: tuple[int, ...] = ()


Contestant = Callable[[Text], Turn]


def interleave(
    texts: Sequence[Text],
    contestants: Mapping[str, Contestant],
    *,
    seed: int,
    repeats: int = 1,
    pause: float = PAUSE,
    warm: bool = False,
) -> dict[str, list[Turn]]:
    """Every contestant's turn for every text: the median of its repeats, with the tokens of the first.

    Args:
        texts: at least one; the first is decoded once more beforehand, to warm up.
        contestants: by name.
        seed: of the orders.
        repeats: rounds per text, each in an order of its own.
        pause: seconds of rest before each turn.
        warm: take each turn twice and drop the first. For short texts of small models: a processor that rested is
            several times slower for its first milliseconds, which nobody sees who encodes and then decodes.
    """
    order = random.Random(seed)
    found: dict[str, list[Turn]] = {name: [] for name in contestants}
    with no_garbage_collection():
        for contestant in contestants.values():
            contestant(texts[0])
        for text in texts:
            rounds: dict[str, list[Turn]] = {name: [] for name in contestants}
            for _ in range(repeats):
                for name in order.sample(sorted(contestants), len(contestants)):
                    time.sleep(pause)
                    if warm:
                        contestants[name](text)
                    rounds[name].append(contestants[name](text))
            for name, turns in rounds.items():
                found[name].append(Turn(statistics.median(turn.seconds for turn in turns), turns[0].tokens))
            gc.collect()
    return found


def marginal(generate: Callable[[int], Sequence[int]], tokens: int, device: str = "cpu") -> Turn:
    """Seconds from the first token to the last: those of all tokens, less those of a decoding that stops after one.

    What is done once per text drops out, whoever does it: an encoder that cannot be run apart, the source's keys and
    values, a `generate`'s preparations.

    Args:
        generate: decodes this text to this many tokens at most.
        tokens: the limit.
        device: whose queued work is waited for.
    """
    start = now(device)
    generate(1)
    first = now(device) - start
    start = now(device)
    ids = generate(tokens)
    # A text of one token has no later ones; noise must not make them cost less than nothing.
    return Turn(max(0.0, now(device) - start - first), tuple(ids))


def seconds_of(turns: Sequence[Turn]) -> list[float]:
    """A contestant's seconds, text by text."""
    return [turn.seconds for turn in turns]


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A collection would land in whoever is being timed; between texts there is time for it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def once_a_text(prepare: Callable[[Text], Any]) -> Callable[[Text], Any]:
    """The preparation of a text, such as its encoding, done once for all turns in a row that need it."""
    last: list[tuple[Text, Any]] = []

    def prepared(text: Text) -> Any:
        if not last or last[0][0] != text:
            last[:] = [(text, prepare(text))]
        return last[0][1]

    return prepared
