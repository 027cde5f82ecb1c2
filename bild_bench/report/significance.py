"""Whether a point's quality differs from its baseline's by more than the choice of texts explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bild_bench.errors import DataError
from bild_bench.measure.quality import Metric, text_statistics
from bild_bench.measure.quality_intervals import paired_quality_difference

if TYPE_CHECKING:
    import pandas as pd

_RESAMPLES = 1000


@dataclass(frozen=True)
class Significance:
    """How much better than the baseline, in points of the metric.

    low, high: 95 % paired bootstrap interval. p_value: that of paired bootstrap resampling (Koehn 2004); test: whose
    and how often. None and NaN where one text allows no such statement. The first draw of each text counts.
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
    """Compare a point's rows with its baseline's over these texts; None where they share none.

    Args:
        metric: "bleu" is tested by sacreBLEU's PairedTest; ROUGE by the same resampling over each text's F1.
        seed: of our resampling; sacreBLEU takes its own (SACREBLEU_SEED, 12345).
        baseline, point: rows of samples.parquet.
    """
    wanted = [rows[(rows["status"] == "ok") & (rows["draw"] == 0)] for rows in (baseline, point)]
    pairs = wanted[0].merge(wanted[1], on="text_id", suffixes=("_base", ""))
    pairs = pairs[pairs["text_id"].isin(set(text_ids))]
    if pairs.empty:
        return None
    base, other = list(pairs["output_text_base"]), list(pairs["output_text"])
    references = [list(texts) for texts in pairs["references"]]
    if base == other:
        # sacreBLEU counts only resamples that differ by more than nothing, and calls the same texts significant.
        end = 0.0 if len(pairs) > 1 else float("nan")
        return Significance(0.0, end, end, 1.0, len(pairs), "none needed: the same texts")
    kind = cast("Metric", metric)
    difference, low, high = paired_quality_difference(kind, base, other, references, seed=seed)
    p_value: float | None = None
    test = "none: a single text"
    if len(pairs) > 1 and metric == "bleu":
        p_value, test = _sacrebleu(base, other, references)
    elif len(pairs) > 1:
        p_value, test = _same_resampling(kind, base, other, references, seed)
    return Significance(difference, low, high, p_value, len(pairs), test)


def _sacrebleu(base: list[str], other: list[str], references: list[list[str]]) -> tuple[float, str]:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    most = max(len(texts) for texts in references)
    # None stands where a text has fewer references than another.
    streams: list[Any] = [[texts[i] if i < len(texts) else None for texts in references] for i in range(most)]
    systems: list[tuple[str, Sequence[str]]] = [("baseline", base), ("point", other)]
    test = PairedTest(systems, {"BLEU": BLEU()}, streams, test_type="bs", n_samples=_RESAMPLES)
    signatures, scores = test()
    result = scores["BLEU"][1]
    if isinstance(result, str) or result.p_value is None:
        raise DataError("quality", "BLEU", "sacreBLEU gave no p-value", "use the sacrebleu that bild-bench asks for")
    return float(result.p_value), f"sacreBLEU paired bootstrap, {signatures['BLEU']}"


def _same_resampling(
    metric: Metric, base: list[str], other: list[str], references: list[list[str]], seed: int
) -> tuple[float, str]:
    """Koehn's test as sacreBLEU does it: how often a centred resample differs as much as the texts do."""
    import numpy as np

    from bild_bench.measure.intervals import resampled_sums

    gains = text_statistics(metric, other, references) - text_statistics(metric, base, references)
    resampled = np.abs(resampled_sums(gains - gains.mean(), seed=seed, resamples=_RESAMPLES)[:, 0])
    # Sums of the same figures in another order differ in their last bits.
    reached = resampled >= abs(float(gains.sum())) - 1e-9
    p_value = float((reached.sum() + 1) / (_RESAMPLES + 1))
    return p_value, f"paired bootstrap of mean F1, seed {seed}, {_RESAMPLES} resamples"
