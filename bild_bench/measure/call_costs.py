"""What a text's calls should take: `cost_model` with context, reading, and the change between models.

Measured apart from the texts (`call_bench`): single calls by rows and context, the opening of a session, and what
calls cost more behind the encoders and behind the other model's, whose weights have taken the caches. Measured on the
calibration texts, from the models alone (vanilla and small): what the decoding loop adds to a call, and the encoders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bild_bench.measure.call_record import Recorded
from bild_bench.measure.cost_model import interpolated

# Cached tokens -> rows -> seconds.
Table = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class CallCosts:
    """Seconds of one model's calls.

    Args:
        source: source tokens when it was calibrated.
        chosen: of calls of which only the best token is asked, at two contexts.
        scored: of calls whose probabilities are read too.
        opening: seconds that a text's session takes to open.
        alone: seconds more that the model's first, second, … call takes in a text that it decodes alone, until its
            weights are back in the caches; the last figure holds for all later calls.
        turns: the same of its first, second, … turn, all calls of the turn together, where two models decode in turns.
        loop: seconds that decoding adds to each call: choosing the token, and the loop itself. Can be below 0, where
            calls in a row are cheaper than calibrated ones.
    """

    source: int
    chosen: Table
    scored: Table
    opening: float = 0.0
    alone: Sequence[float] = ()
    turns: Sequence[float] = ()
    loop: float = 0.0

    def seconds(self, rows: int, cached: int, source: int, *, scored: bool) -> float:
        """One call alone: linear in rows between those calibrated, and in the keys that are read.

        A source token more costs as much as a cached one: either is a key that every row is compared with.
        """
        (short, near), (long, far) = sorted((self.scored if scored else self.chosen).items())
        low = interpolated(near, rows)
        # More keys never cost less: a slope below 0 is noise.
        slope = max(0.0, interpolated(far, rows) - low) / (long - short)
        return max(0.0, low + slope * (cached + source - self.source - short))

    def of(self, call: Recorded) -> float:
        """One recorded call alone."""
        last = call.passes[-1]
        return self.seconds(call.rows, last.cached, last.source, scored=call.scored)


@dataclass(frozen=True)
class EncoderCosts:
    """Seconds of one model's encoder, its decoder's keys and values included: linear in FLOPs."""

    base: float
    per_flop: float

    def seconds(self, flops: int) -> float:
        return self.base + self.per_flop * flops


def fit_loop(costs: CallCosts, role: str, texts: Sequence[tuple[Sequence[Recorded], float]]) -> CallCosts:
    """The costs with `loop` from texts that this model decoded alone.

    Args:
        costs: as measured apart from texts.
        role: the model's.
        texts: each text's calls and its measured decoding seconds.
    """
    calls = sum(len(recorded) for recorded, _ in texts)
    expected = sum(predict_decoding({role: costs}, recorded) for recorded, _ in texts)
    beyond = sum(seconds for _, seconds in texts) - expected
    return replace(costs, loop=costs.loop + beyond / calls if calls else costs.loop)


def fit_encoder(flops: Sequence[int], seconds: Sequence[float]) -> EncoderCosts:
    """Least squares through encodings of texts; constant where they have one length, or longer ones took no longer."""
    mean_flops, mean_seconds = float(np.mean(flops)), float(np.mean(seconds))
    spread = float(np.sum((np.array(flops) - mean_flops) ** 2))
    slope = 0.0
    if spread > 0:
        slope = float(np.sum((np.array(flops) - mean_flops) * (np.array(seconds) - mean_seconds))) / spread
    # Neither a negative price a FLOP nor a negative price for the shortest text.
    slope = min(max(0.0, slope), mean_seconds / mean_flops)
    return EncoderCosts(mean_seconds - slope * mean_flops, slope)


def predict_decoding(costs: Mapping[str, CallCosts], calls: Sequence[Recorded]) -> float:
    """Seconds that one text's calls should take.

    Args:
        costs: of the models that decode it: each opens a session.
        calls: in their order.
    """
    total = sum(cost.opening for cost in costs.values())
    taken, before = dict.fromkeys(costs, 0), None
    for call in calls:
        cost = costs[call.role]
        total += cost.of(call) + cost.loop
        if len(costs) == 1 or call.role != before:
            extra = cost.alone if len(costs) == 1 else cost.turns
            total += extra[min(taken[call.role], len(extra) - 1)] if extra else 0.0
            taken[call.role] += 1
        before = call.role
    return total
