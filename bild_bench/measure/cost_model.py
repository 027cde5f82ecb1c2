"""What decoding should have taken, by the cost of one call: the calibration pass's figures times the counters.

seconds = small calls x S(1 row) + the sum over large calls of L(rows) + encoders. What is measured beyond that is the
decoding loop, the opening of sessions, and contexts longer than the calibrated one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Methods whose calls are whole passes of S or L. An early exit costs a part of a pass, which is not calibrated.
MODELLED = frozenset({"vanilla", "small", "bild", "speculative", "oracle"})


@dataclass(frozen=True)
class Costs:
    """Seconds per call, as calibrated.

    Args:
        small: one row of S; None where S was not calibrated.
        large: rows -> seconds of one call of L; empty where L was not calibrated.
        encoders: role -> seconds of one encoding.
    """

    small: float | None
    large: Mapping[int, float]
    encoders: Mapping[str, float]

    def large_call(self, rows: float) -> float:
        """One call of L, by `interpolated`.

        Raises:
            ValueError: L was not calibrated, or fewer rows than calibrated.
        """
        return interpolated(self.large, rows)


def interpolated(calibrated: Mapping[int, float], rows: float) -> float:
    """Seconds of a call: linear between the calibrated rows, and beyond the last as between the last two.

    Raises:
        ValueError: nothing was calibrated, or fewer rows than calibrated.
    """
    known = sorted(calibrated.items())
    if not known or rows < known[0][0]:
        raise ValueError(f"no calibrated cost for {rows} rows")
    if len(known) == 1:
        return known[0][1]
    upper = next((n for n in range(1, len(known)) if rows <= known[n][0]), len(known) - 1)
    (rows_below, below), (rows_above, above) = known[upper - 1], known[upper]
    return below + (above - below) * (rows - rows_below) / (rows_above - rows_below)


@dataclass(frozen=True)
class Predicted:
    """Seconds by part, summed over texts."""

    small_seconds: float
    large_seconds: float
    encode_seconds: float

    @property
    def decode_seconds(self) -> float:
        """Calls of both models, without the encoders."""
        return self.small_seconds + self.large_seconds

    @property
    def total_seconds(self) -> float:
        """With the encoders."""
        return self.decode_seconds + self.encode_seconds


@dataclass(frozen=True)
class Calls:
    """One text's calls. fed: tokens that L was given in all of its calls together."""

    small_calls: int
    large_calls: int
    fed: int


def read_costs(calibration: Mapping[str, Any]) -> Costs | None:
    """The calibration of a run's record (see `measure.timing.calibrate`); None where there is none."""
    roles = [role for role in ("large", "small") if role in calibration]
    if not roles:
        return None
    rows = {role: {int(n): float(cost) for n, cost in calibration[role]["rows"].items()} for role in roles}
    encoders = {role: float(calibration[role]["encode_seconds"]) for role in roles}
    return Costs(rows.get("small", {}).get(1), rows.get("large", {}), encoders)


def predict(costs: Costs, texts: Sequence[Calls]) -> Predicted | None:
    """What these texts should take; None where a model is called that was not calibrated.

    Rows per call are a text's average: the cost is close to linear between the calibrated rows, so that the average
    stands for the single calls.
    """
    small_calls = sum(text.small_calls for text in texts)
    uses = {"small": small_calls > 0, "large": any(text.large_calls > 0 for text in texts)}
    if (uses["small"] and costs.small is None) or (uses["large"] and not costs.large):
        return None
    small = 0.0 if costs.small is None else small_calls * costs.small
    large = sum(
        text.large_calls * costs.large_call(max(1.0, text.fed / text.large_calls))
        for text in texts
        if text.large_calls > 0
    )
    encode = len(texts) * sum(costs.encoders[role] for role, used in uses.items() if used)
    return Predicted(small, large, encode)
