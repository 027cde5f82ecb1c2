"""Bootstrap intervals of quality scores over texts (Koehn 2004, Statistical Significance Tests for Machine Translation
Evaluation). Corpus scores come from sums of each text's statistics, so that a resample scores no text again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bild_bench.measure.intervals import (
    Difference,
    Floats,
    centred_test,
    percentile_interval,
    resampled_sums,
)
from bild_bench.measure.metrics import is_bleu
from bild_bench.measure.quality import Metric, bleu_of, text_statistics

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

# Text ids, the baseline's outputs, the point's, and references.
PairedDraw = tuple[Sequence[Hashable], Sequence[str], Sequence[str], Sequence[Sequence[str]]]


def quality_interval(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    seed: int,
    resamples: int = 1000,
    level: float = 0.95,
) -> tuple[float, float]:
    """The bootstrap interval (low, high) of `score` over texts, in points; NaN with one text.

    Raises:
        DataError, UsageError: as `score`; UsageError also for `resamples` or `level` out of range.
    """
    one = [(range(len(hypotheses)), hypotheses, references)]
    return mean_quality_interval(metric, one, seed=seed, resamples=resamples, level=level)


def mean_quality_interval(
    metric: Metric,
    draws: Sequence[tuple[Sequence[Hashable], Sequence[str], Sequence[Sequence[str]]]],
    *,
    seed: int,
    resamples: int = 1000,
    level: float = 0.95,
) -> tuple[float, float]:
    """The interval of the mean over draws of each draw's `score`; a text is resampled with all its draws.

    Draws of one text are no new texts: to resample them apart would make the interval too narrow.

    Args:
        metric: as for `score`.
        draws: for each draw its texts' ids, hypotheses and references; a draw may lack some of the texts.
        seed: the same seed and data give the same interval.
        resamples: bootstrap resamples.
        level: coverage of the interval, in (0, 1).

    Raises:
        DataError, UsageError: as `quality_interval`.
    """
    place = _places(draws)
    blocks = [_block(metric, place, names, hypotheses, references) for names, hypotheses, references in draws]
    values = _mean_values(metric, blocks, resampled_sums(np.hstack(blocks), seed=seed, resamples=resamples))
    return percentile_interval(values, texts=len(place), level=level)


def paired_quality_test(
    metric: Metric, draws: Sequence[PairedDraw], *, seed: int, resamples: int = 1000, level: float = 0.95
) -> Difference:
    """How much better than the baseline, in points of the metric, with its interval and p-value (`centred_test`).

    Both systems are resampled together, so texts that are hard for both do not widen the interval (Koehn 2004, paired
    bootstrap resampling). Signed differences are what is centred: the test of Koehn's that sacreBLEU has centres their
    absolute values, and so may call a difference significant whose interval holds 0.

    Args:
        draws: for each draw its texts' ids, the baseline's and the point's hypotheses, and references; the difference
            is the mean over draws of each draw's. A text is resampled with all its draws.

    Raises:
        DataError, UsageError: as `quality_interval`.
    """
    place = _places(draws)
    base = [_block(metric, place, names, before, references) for names, before, _, references in draws]
    other = [_block(metric, place, names, after, references) for names, _, after, references in draws]
    both = np.hstack([*base, *other])
    sums = np.vstack([both.sum(axis=0), resampled_sums(both, seed=seed, resamples=resamples)])
    halves = np.split(sums, 2, axis=1)
    differences = _mean_values(metric, other, halves[1]) - _mean_values(metric, base, halves[0])
    return centred_test(float(differences[0]), differences[1:], texts=len(place), level=level)


def paired_quality_difference(
    metric: Metric,
    base_hypotheses: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    seed: int,
    resamples: int = 1000,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """`paired_quality_test` of one draw: (difference, low, high) in points, positive where `hypotheses` score higher.

    Raises:
        DataError, UsageError: as `quality_interval`.
    """
    one = [(range(len(hypotheses)), base_hypotheses, hypotheses, references)]
    found = paired_quality_test(metric, one, seed=seed, resamples=resamples, level=level)
    return found.value, found.low, found.high


def _places(draws: Sequence[tuple[Sequence[Hashable], *tuple[Any, ...]]]) -> dict[Hashable, int]:
    """The row of each text that some draw has."""
    return {name: row for row, name in enumerate(dict.fromkeys(name for names, *_ in draws for name in names))}


def _block(
    metric: Metric,
    place: Mapping[Hashable, int],
    names: Sequence[Hashable],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
) -> Floats:
    """A draw's statistics, shape (texts, columns): 0 where it lacks a text."""
    statistics = text_statistics(metric, hypotheses, references)
    block = np.zeros((len(place), statistics.shape[1] + 1))
    # The last column counts texts: a resample may hold more or fewer of a draw that lacks some.
    block[[place[name] for name in names]] = np.column_stack([statistics, np.ones(len(names))])
    return block


def _mean_values(metric: Metric, blocks: Sequence[Floats], sums: Floats) -> Floats:
    """The mean over draws of their corpus scores, shape (rows,), from sums of their blocks side by side."""
    parts = np.split(sums, len(blocks), axis=1)
    values: Floats = np.mean([_corpus_values(metric, part[:, :-1], part[:, -1]) for part in parts], axis=0)
    return values


def _corpus_values(metric: Metric, sums: Floats, texts: Floats) -> Floats:
    """Corpus scores in points, shape (rows,), from column sums of text statistics, shape (rows, columns).

    texts: how many are in each sum, shape (rows,); a sum over none has no score, which is NaN.
    """
    if not is_bleu(metric):
        with np.errstate(invalid="ignore"):
            return 100.0 * sums[:, 0] / texts
    bleu = bleu_of(metric)
    rows = zip(sums.astype(np.int64).tolist(), texts, strict=True)
    return np.array([_bleu_of_counts(bleu, row) if count else np.nan for row, count in rows])


def _bleu_of_counts(bleu: BLEU, counts: list[int]) -> float:
    """Corpus BLEU in points from the ten pooled counts of `text_statistics`, with the metric's own settings."""
    orders = bleu.max_ngram_order
    pooled = bleu.compute_bleu(
        correct=counts[2 : 2 + orders],
        total=counts[2 + orders :],
        sys_len=counts[0],
        ref_len=counts[1],
        smooth_method=bleu.smooth_method,
        smooth_value=bleu.smooth_value,
        effective_order=bleu.effective_order,
        max_ngram_order=orders,
    )
    return float(pooled.score)
