from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bild_bench.errors import DataError, UsageError
from bild_bench.measure import intervals
from bild_bench.measure.intervals import percentile_interval, ratio_of_sums, resampled_sums

seconds = st.floats(0.01, 100)
pairs_of_times = st.lists(st.tuples(seconds, seconds), min_size=2, max_size=12)


def test_two_texts_worked_by_hand():
    # Resamples of two texts give 6/2 = 3, (6+4)/(2+3) = 2 and 4/3 with chances 1/4, 1/2 and 1/4: the 2.5 and 97.5 %
    # quantiles are the extremes, the 30 and 70 % quantiles both the middle.
    estimate = ratio_of_sums([6, 4], [2, 3], seed=0)
    assert estimate.value == 2
    assert (estimate.low, estimate.high) == pytest.approx((4 / 3, 3))
    middle = ratio_of_sums([6, 4], [2, 3], seed=0, level=0.4)
    assert (middle.low, middle.high) == (2, 2)


def test_long_texts_count_by_their_length():
    assert ratio_of_sums([1, 100], [1, 50], seed=0).value == pytest.approx(101 / 51)  # the mean of ratios is 1.5


def test_texts_are_paired():
    times = np.array([1.0, 5.0, 0.2, 30.0])
    estimate = ratio_of_sums(3 * times, times, seed=0)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((3, 3, 3))


def test_one_text_has_a_value_and_no_interval():
    estimate = ratio_of_sums([3.0], [2.0], seed=0)
    assert estimate.value == 1.5
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


def test_a_denominator_that_may_vanish_has_no_interval():
    estimate = ratio_of_sums([1.0, 1.0], [1.0, 0.0], seed=0)
    assert estimate.value == 2
    assert math.isnan(estimate.high)


def test_zero_numerators_are_zero_and_not_missing():
    estimate = ratio_of_sums([0, 0, 0], [1, 2, 3], seed=0)
    assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)


def test_the_seed_decides_the_draw():
    rng = np.random.default_rng(5)
    top, bottom = rng.gamma(2, size=(2, 30))
    assert ratio_of_sums(top, bottom, seed=1) == ratio_of_sums(top, bottom, seed=1)
    assert ratio_of_sums(top, bottom, seed=1) != ratio_of_sums(top, bottom, seed=2)


def test_width_agrees_with_the_delta_method():
    # Standard error of a ratio of means: sd(top - ratio * bottom) / (mean(bottom) * sqrt(texts)).
    rng = np.random.default_rng(7)
    bottom = rng.gamma(4, size=2000)
    top = 2 * bottom * rng.lognormal(sigma=0.3, size=2000)
    estimate = ratio_of_sums(top, bottom, seed=0)
    error = np.std(top - estimate.value * bottom) / (bottom.mean() * math.sqrt(2000))
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * error, rel=0.08)


def test_covers_a_known_ratio_as_often_as_it_says():
    rng = np.random.default_rng(11)
    hits, trials = 0, 400
    for trial in range(trials):
        bottom = rng.gamma(4, size=80)
        top = 1.7 * bottom * rng.gamma(10, 0.1, size=80)  # the factor's mean is 1: the true ratio is 1.7
        estimate = ratio_of_sums(top, bottom, seed=trial, resamples=400)
        hits += estimate.low <= 1.7 <= estimate.high
    assert 0.92 <= hits / trials <= 0.98


@given(pairs_of_times)
def test_interval_stays_between_the_extreme_ratios(pairs):
    top, bottom = np.array(pairs).T
    estimate = ratio_of_sums(top, bottom, seed=0, resamples=50)
    slack = 1e-9
    assert (top / bottom).min() * (1 - slack) <= estimate.low <= estimate.high <= (top / bottom).max() * (1 + slack)


@given(pairs_of_times, st.sampled_from([0.001, 3.0, 1000.0]))
def test_units_do_not_matter(pairs, scale):
    top, bottom = np.array(pairs).T
    seconds_based = ratio_of_sums(top, bottom, seed=0, resamples=50)
    scaled = ratio_of_sums(scale * top, scale * bottom, seed=0, resamples=50)
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(
        (seconds_based.value, seconds_based.low, seconds_based.high)
    )


@given(pairs_of_times)
def test_symmetric_times_give_an_interval_around_one(pairs):
    top, bottom = np.array(pairs + [(b, a) for a, b in pairs]).T
    estimate = ratio_of_sums(top, bottom, seed=0)
    assert estimate.value == pytest.approx(1)
    assert estimate.low <= 1 + 1e-9
    assert estimate.high >= 1 - 1e-9


def test_every_resample_draws_as_many_texts_as_there_are():
    sums = resampled_sums(np.column_stack([np.ones(9), np.arange(9)]), seed=3, resamples=200)
    assert (sums[:, 0] == 9).all()
    assert sums[:, 1].mean() == pytest.approx(36, abs=3 * math.sqrt(9 * 20 / 3 / 200))  # var(0..8) is 20/3


def test_memory_blocks_do_not_change_the_draw(monkeypatch):
    statistics = np.random.default_rng(0).random((13, 2))
    whole = resampled_sums(statistics, seed=3, resamples=50)
    monkeypatch.setattr(intervals, "_DRAWS_AT_ONCE", 40)
    assert resampled_sums(statistics, seed=3, resamples=50) == pytest.approx(whole)


def test_percentiles_cut_both_tails_alike():
    assert percentile_interval(np.arange(101.0), texts=5, level=0.9) == pytest.approx((5, 95))


@pytest.mark.parametrize(
    ("top", "bottom", "named"),
    [
        ([], [], "numerator"),
        ([[1.0]], [[1.0]], "numerator"),
        ([1.0, 2.0], [1.0], "numerator"),
        ([1.0, math.nan], [1.0, 1.0], "nan"),
        ([1.0, 1.0], [math.inf, 1.0], "denominator"),
        ([-1.0, 1.0], [1.0, 1.0], "-1.0"),
        ([1.0, 1.0], [0.0, 0.0], "denominator"),
    ],
)
def test_figures_that_cannot_be_paired_are_refused(top, bottom, named):
    with pytest.raises(DataError, match=named):
        ratio_of_sums(top, bottom, seed=0)


@pytest.mark.parametrize("settings", [{"level": 0.0}, {"level": 1.0}, {"level": 95.0}, {"resamples": 0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(UsageError, match=next(iter(settings))):
        ratio_of_sums([1.0, 2.0], [1.0, 2.0], seed=0, **settings)
    with pytest.raises(DataError, match="texts"):
        resampled_sums(np.empty((0, 2)), seed=0, resamples=10)
