"""Bootstrap intervals over texts.

Texts are the sampling unit everywhere: tokens of one text are not independent, and neither are two systems' figures for
one text. A resample therefore draws whole texts, and paired figures share the draw. Intervals are percentile intervals
(Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13), those of quality differences the inverse of
the test that stands beside them (`centred_test`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bild_bench.errors import DataError, UsageError

Floats = NDArray[np.float64]

# Draws held at once: bounds the memory of a bootstrap over ten thousand texts to some 60 MB.
_DRAWS_AT_ONCE = 2_000_000

# Sums of the same figures in another order differ in their last bits: less than this is no difference.
_DUST = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval. `low` and `high` are NaN where one text gives no interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """A paired difference, its interval and the p-value of the same test; see `centred_test`.

    low, high: NaN, and p_value None, where one text or too few resamples allow no such statement.
    """

    value: float
    low: float
    high: float
    p_value: float | None


def ratio_of_sums(
    numerator: ArrayLike, denominator: ArrayLike, *, seed: int, resamples: int = 2000, level: float = 0.95
) -> Estimate:
    """sum(numerator) / sum(denominator) with a paired bootstrap interval over texts.

    With the baseline's times over a point's times this is the paired speed-up. A mean of ratios would give a short text
    the weight of a long one.

    Args:
        numerator: shape (texts,), one figure per text, at least 0, any unit.
        denominator: shape (texts,), the same texts in the same order, at least 0.
        seed: the same seed and data give the same interval.
        resamples: bootstrap resamples.
        level: coverage of the interval, in (0, 1).

    Returns:
        The ratio and its interval; the interval is NaN with one text, or where a resample's denominator can be zero.

    Raises:
        DataError: no texts, unequal lengths, a figure that is negative or not finite, a denominator that sums to zero.
        UsageError: `level` or `resamples` out of range.
    """
    top, bottom = _one_figure_a_text("numerator", numerator), _one_figure_a_text("denominator", denominator)
    if len(top) != len(bottom):
        raise DataError("numerator", len(top), f"texts, but the denominator has {len(bottom)}", "pair the same texts")
    if bottom.sum() <= 0:
        raise DataError("denominator", float(bottom.sum()), "must sum to more than 0", "check the recorded times")
    sums = resampled_sums(np.column_stack([top, bottom]), seed=seed, resamples=resamples)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], math.nan)
    low, high = percentile_interval(ratios, texts=len(top), level=level)
    return Estimate(float(top.sum() / bottom.sum()), low, high)


def resampled_sums(statistics: ArrayLike, *, seed: int, resamples: int) -> Floats:
    """Column sums over bootstrap resamples of the texts.

    Args:
        statistics: shape (texts, columns), additive figures of each text; the columns share each draw (paired).
        seed: of the draw.
        resamples: how many, at least 1.

    Returns:
        Shape (resamples, columns).

    Raises:
        DataError: no texts.
        UsageError: fewer than one resample.
    """
    rows = np.asarray(statistics, dtype=np.float64)
    texts = len(rows)
    if texts == 0:
        raise DataError("texts", 0, "nothing to resample", "give at least one finished text")
    if resamples < 1:
        raise UsageError("resamples", resamples, "must be at least 1", "1000 or more give a steady interval")
    rng = np.random.default_rng(seed)
    block = max(1, _DRAWS_AT_ONCE // texts)
    sizes = [min(block, resamples - start) for start in range(0, resamples, block)]
    return np.concatenate([_draw_counts(rng, size, texts) @ rows for size in sizes])


def percentile_interval(values: Floats, *, texts: int, level: float) -> tuple[float, float]:
    """The central `level` share of bootstrap `values`: (low, high).

    One text can only be resampled into itself, and an interval of zero width would claim certainty: it is NaN.

    Raises:
        UsageError: `level` is not strictly between 0 and 1.
    """
    if not 0 < level < 1:
        raise UsageError("level", level, "must be more than 0 and less than 1", "0.95 is usual")
    if texts < 2 or not np.isfinite(values).all():
        return math.nan, math.nan
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def centred_test(value: float, resampled: Floats, *, texts: int, level: float) -> Difference:
    """The two-sided bootstrap test of a paired difference, and the interval that inverts it.

    p is the share of resamples that are at least as far from the observed difference as that is from 0, the observed
    one counted among them (Hall and Wilson 1991, Two Guidelines for Bootstrap Hypothesis Testing). The interval is
    symmetric about the difference (Hall 1988, On Symmetric Bootstrap Confidence Intervals) and holds every difference
    that the test does not reject: 0 lies outside it exactly where p is less than 1 - `level`. A difference of 0 has
    p = 1.

    Args:
        value: the difference over all texts.
        resampled: shape (resamples,), the difference over each bootstrap resample of the texts.
        texts: how many were resampled.
        level: coverage of the interval, in (0, 1).

    Raises:
        UsageError: `level` is not strictly between 0 and 1.
    """
    if not 0 < level < 1:
        raise UsageError("level", level, "must be more than 0 and less than 1", "0.95 is usual")
    value = 0.0 if abs(value) < _DUST else value
    # So many resamples may be as far away, and p is still less than 1 - level.
    most = math.ceil((1 - level) * (len(resampled) + 1) - 1) - 1
    if texts < 2 or most < 0 or not np.isfinite(resampled).all():
        return Difference(value, math.nan, math.nan, None)
    distances = np.abs(resampled - value)
    for tie in (0.0, abs(value)):
        distances[np.abs(distances - tie) < _DUST] = tie
    p_value = (int((distances >= abs(value)).sum()) + 1) / (len(resampled) + 1)
    reach = float(np.sort(distances)[::-1][most])
    return Difference(value, value - reach, value + reach, p_value)


def _draw_counts(rng: np.random.Generator, resamples: int, texts: int) -> Floats:
    """How often each text is drawn in each resample: shape (resamples, texts), rows sum to `texts`."""
    draws = rng.integers(texts, size=(resamples, texts))
    draws += np.arange(resamples)[:, np.newaxis] * texts
    counts = np.bincount(draws.ravel(), minlength=resamples * texts)
    return counts.reshape(resamples, texts).astype(np.float64)


def _one_figure_a_text(field: str, values: ArrayLike) -> Floats:
    figures = np.asarray(values, dtype=np.float64)
    if figures.ndim != 1 or figures.size == 0:
        raise DataError(field, figures.shape, "must be one figure per text, at least one", "give the finished texts")
    wrong = figures[~(np.isfinite(figures) & (figures >= 0))]
    if wrong.size:
        raise DataError(field, float(wrong[0]), "must be finite and at least 0", "leave out texts that failed")
    return figures
