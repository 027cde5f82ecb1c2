"""Whether a point's quality differs from its baseline's by more than the choice of texts explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from bild_bench.measure.answered import answered_rows
from bild_bench.measure.quality import Metric
from bild_bench.measure.quality_intervals import paired_quality_test

if TYPE_CHECKING:
    import pandas as pd

_RESAMPLES = 1000


@dataclass(frozen=True)
class Significance:
    """How much better than the baseline, in points of the metric, as the mean over draws.

    low, high: 95 % interval. p_value: two-sided, of the same resamples, below 0.05 exactly where the interval excludes
    0 (`measure.intervals.centred_test`). None and NaN where one text allows no such statement. test: which and how
    often.
    """

    difference: float
    low: float
    high: float
    p_value: float | None
    texts: int
    test: str


def quality_significance(
    metric: str, seed: int, baseline: pd.DataFrame, point: pd.DataFrame, text_ids: Sequence[str]
) -> Significance | None:
    """Compare a point's rows with its baseline's over these texts; None where they share none that has a reference.

    Args:
        metric: of both; every metric has the same test.
        seed: of the resampling.
        baseline, point: rows of samples.parquet. A draw is compared with the baseline's draw of its number.
    """
    # A baseline that was decoded again beside later points counts once.
    sides = [rows[rows["status"] == "ok"].drop_duplicates(["text_id", "draw"]) for rows in (baseline, point)]
    pairs = sides[0].merge(sides[1], on=["text_id", "draw"], suffixes=("_base", ""))
    pairs = answered_rows(pairs[pairs["text_id"].isin(set(text_ids))])
    if pairs.empty:
        return None
    draws = [
        (
            *(list(rows["text_id"]), list(rows["output_text_base"]), list(rows["output_text"])),
            [list(texts) for texts in rows["references"]],
        )
        for _, rows in pairs.groupby("draw")
    ]
    found = paired_quality_test(cast("Metric", metric), draws, seed=seed, resamples=_RESAMPLES)
    test = f"two-sided paired bootstrap, seed {seed}, {_RESAMPLES} resamples of the texts"
    if found.p_value is None:
        test = "none: too few texts"
    texts = pairs["text_id"].nunique()
    return Significance(found.value, found.low, found.high, found.p_value, texts, test)
