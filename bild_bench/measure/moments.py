"""Calls timed at several moments of a run as one calibration, and how far the moments differ.

A machine is not equally fast at all times: calls that were all timed before the first text would tell of that moment,
and if another program wanted the machine just then, of nothing else.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

# A quiet machine's moments differ by less, one that others use by more.
MOST_DRIFT = 1.5
NOT_PREDICTABLE = "not predictable: the machine was busy while calls were timed"


def merged(moments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One calibration: the medians over moments, with the moments and their drift beside them.

    Args:
        moments: from `timing.calibrate`, in their order; at least one.

    Returns:
        What `timing.calibrate` returns, "moments": those that were given, and "drift": see `drift_of`.
    """
    roles = [name for name, value in moments[0].items() if isinstance(value, Mapping)]
    result = {name: value for name, value in moments[0].items() if name not in roles}
    for role in roles:
        rows = moments[0][role]["rows"]
        result[role] = {
            "encode_seconds": statistics.median(moment[role]["encode_seconds"] for moment in moments),
            "rows": {n: statistics.median(moment[role]["rows"][n] for moment in moments) for n in rows},
        }
    kinds = [[moment[role]["rows"][n] for moment in moments] for role in roles for n in moments[0][role]["rows"]]
    return result | {"moments": [dict(moment) for moment in moments], "drift": drift_of(kinds)}


def drift_of(kinds: Sequence[Sequence[float]]) -> float | None:
    """How many times slower calls were at the slowest moment than at the fastest; None where nothing tells.

    At each moment the median over kinds of call counts, so that one call that was held up is no drift.

    Args:
        kinds: of each kind of call, its seconds at every moment.
    """
    scaled = [[seconds / statistics.median(times) for seconds in times] for times in kinds if min(times) > 0]
    if not scaled:
        return None
    levels = [statistics.median(level) for level in zip(*scaled, strict=True)]
    return float(max(levels) / min(levels))


def moments_after(texts: int, moments: int = 4) -> frozenset[int]:
    """After how many of the texts calls are timed again: at equal distances, the last one at the end.

    Args:
        texts: how many there are.
        moments: how many are wanted; fewer where there are fewer texts.
    """
    return frozenset(-(-texts * number // moments) for number in range(1, moments + 1)) - {0}
