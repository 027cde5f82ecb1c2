"""The rows of one model and one precision on a GPU, for the record: the targets of `bench.steps` are the CPU's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench import baselines
from bench.ceiling import step_of
from bench.figures import SEED, Figure, figure
from bench.interleave import Contestant, Turn, interleave, seconds_of
from bench.pairs import VANILLA, pair_figures
from bench.shapes import Announce, Subject
from bench.steps import LIBRARY, OURS, outside_figures, shape_of_large, verification_figures
from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.bild import BildSettings
from bild_bench.measure.ceilings import measure_ceilings

# Every draft is kept and the large model sees 8 tokens at a time: what BiLD gains at most from such a pair.
ALL_KEPT = BildSettings(0.0, math.inf, max_draft=7)


def speed_figures(subject: Subject, announce: Announce) -> list[Figure]:
    """Vanilla over `generate` and over the machine's limit, 8 tokens in a step over one, and the time outside.

    Args:
        subject: its shape's name has the precision in it.
        announce: called with one line before something slow.
    """
    pair = subject.pair
    contestants: dict[str, Contestant] = {
        OURS: baselines.our_vanilla(subject),
        LIBRARY: baselines.library_greedy(subject),
    }
    announce(f"{subject.shape}: vanilla, {len(subject.texts)} texts")
    turns = interleave(subject.texts, contestants, seed=SEED, repeats=1 if subject.fixed else 3)
    work = step_of(shape_of_large(subject), 1)
    ceilings = measure_ceilings(pair.device, pair.dtype, {"large": work.weight_bytes})
    limit = ceilings.seconds("large", work.flops, work.weight_bytes)
    return without_targets(
        [
            *vanilla_rows(subject.shape, turns, limit, subject.ends, told(pair.describe()["large"])),
            *verification_figures(subject, announce),
            *outside_figures(subject, VANILLA, AloneSettings(), announce),
        ]
    )


def vanilla_rows(
    shape: str, turns: Mapping[str, Sequence[Turn]], limit: float, ends: frozenset[int], session: str
) -> list[Figure]:
    """The rows of vanilla, from everyone's turns.

    Args:
        shape: model and precision.
        turns: ours and the library's.
        limit: the machine's, in seconds per step.
        ends: tokens that end a text.
        session: what the notes say of ours.
    """
    own, same = seconds_of(turns[OURS]), baselines.same_tokens(turns, OURS, ends)[LIBRARY]
    note = f"same tokens on {same} of {len(own)} texts; {session}"
    over = figure("vanilla", shape, f"over {LIBRARY}", seconds_of(turns[LIBRARY]), own, note=note)
    # The first token is in nobody's time.
    steps = [max(0, len(turn.tokens) - 1) for turn in turns[OURS]]
    told_limit = f"{1000 * sum(own) / max(1, sum(steps)):.2f} ms per token, limit {1000 * limit:.2f} ms"
    limits = [count * limit for count in steps]
    return [over, figure("vanilla step", shape, "of machine's limit", own, limits, bound="at most", note=told_limit)]


def told(description: Mapping[str, Any]) -> str:
    """Which session a model has, and why its steps are not captured where they are not."""
    why = description.get("session_not_captured")
    return f"session {description['session']}" + ("" if why is None else f" ({why})")


def bound_figures(subject: Subject, announce: Announce) -> list[Figure]:
    """BiLD with every draft kept over our vanilla: random weights agree on nothing, so only the bound means anything.

    Args:
        subject: with a small model.
        announce: called with one line before something slow.
    """
    announce(f"{subject.shape}: BiLD, every draft kept")
    contestants = {
        VANILLA: baselines.our_method(subject, VANILLA, AloneSettings()),
        "bild": baselines.our_method(subject, "bild", ALL_KEPT),
    }
    turns = interleave(subject.texts, contestants, seed=SEED)
    note = f"{ALL_KEPT.label()}; random weights: a bound, and no gain that a pair had"
    times = seconds_of(turns[VANILLA]), seconds_of(turns["bild"])
    return [figure("BiLD, every draft kept", subject.shape, "over our vanilla", *times, note=note)]


def trained_figures(subject: Subject, announce: Announce) -> list[Figure]:
    """BiLD over transformers assisted generation, and over our vanilla at a bounded loss; see `pairs.pair_figures`."""
    return without_targets(pair_figures(subject, {}, announce))


def without_targets(figures: Sequence[Figure]) -> list[Figure]:
    """The same figures for the record."""
    return [replace(each, target=None, reached=None) for each in figures]
