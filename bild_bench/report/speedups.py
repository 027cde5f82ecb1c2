"""Paired speed-ups: the baseline's seconds over a point's, with intervals over texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bild_bench.measure.intervals import Estimate, percentile_interval, ratio_of_sums, resampled_sums
from bild_bench.report.totals import ratio, total

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.measure.intervals import Floats

_LEVEL, _RESAMPLES = 0.95, 2000


def speedup(pairs: pd.DataFrame, seconds: str, seed: int) -> Estimate | None:
    """The baseline's summed seconds over the point's; None where one is unknown or 0.

    Args:
        pairs: rows of both, the baseline's columns with the suffix "_base".
        seconds: the column.
        seed: of the resampling.
    """
    columns = [f"{seconds}_base", seconds]
    if ratio(total(pairs[columns[0]]), total(pairs[columns[1]])) is None:
        return None
    base, point = _by_text(pairs, columns).T
    return ratio_of_sums(base, point, seed=seed, resamples=_RESAMPLES, level=_LEVEL)


def speedup_per_token(pairs: pd.DataFrame, seed: int) -> Estimate | None:
    """Decode seconds per token of the baseline over those of the point.

    Four sums in one draw: resampling the two lengths apart from the times would widen the interval.
    """
    columns = ["decode_seconds_base", "generated_base", "decode_seconds", "generated"]
    totals = [total(pairs[name]) for name in columns]
    value = ratio(ratio(totals[0], totals[1]), ratio(totals[2], totals[3]))
    if value is None:
        return None
    figures = _by_text(pairs, columns)
    sums = resampled_sums(figures, seed=seed, resamples=_RESAMPLES)
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = (sums[:, 0] / sums[:, 1]) / (sums[:, 2] / sums[:, 3])
    return Estimate(value, *percentile_interval(resampled, texts=len(figures), level=_LEVEL))


def _by_text(pairs: pd.DataFrame, columns: list[str]) -> Floats:
    """Each text's sums over its draws, shape (texts, columns)."""
    return pairs.groupby("text_id", sort=False)[columns].sum().to_numpy(dtype=np.float64)
