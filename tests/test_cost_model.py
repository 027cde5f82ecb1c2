"""Predicted seconds, worked out by hand."""

from __future__ import annotations

import pytest

from bild_bench.measure.cost_model import Calls, Costs, predict, read_costs

CALIBRATION = {
    "source_tokens": 20,
    "context_tokens": 16,
    "repeats": 7,
    "large": {"encode_seconds": 3.0, "rows": {"1": 10.0, "2": 11.0, "4": 13.0, "8": 21.0, "16": 37.0}},
    "small": {"encode_seconds": 0.5, "rows": {"1": 1.0}},
}


def _costs() -> Costs:
    costs = read_costs(CALIBRATION)
    assert costs is not None
    return costs


@pytest.mark.parametrize(
    ("rows", "seconds"), [(1, 10.0), (1.5, 10.5), (3, 12.0), (8, 21.0), (12, 29.0), (16, 37.0), (20, 45.0)]
)
def test_a_large_call_is_linear_between_the_calibrated_rows_and_goes_on_beyond(rows: float, seconds: float) -> None:
    assert _costs().large_call(rows) == pytest.approx(seconds)


def test_fewer_rows_than_calibrated_or_no_calibration_is_refused() -> None:
    with pytest.raises(ValueError, match="no calibrated cost"):
        _costs().large_call(0.5)
    with pytest.raises(ValueError, match="no calibrated cost"):
        Costs(1.0, {}, {}).large_call(1)


def test_one_calibrated_size_holds_for_all() -> None:
    assert Costs(None, {1: 10.0}, {}).large_call(7) == 10.0


def test_small_calls_large_calls_and_encoders_are_added_up_over_texts() -> None:
    # Text one: 8 S calls; 3 L calls fed 9 tokens, 3 rows each, 12 s. Text two: 4 S calls; 2 L calls of 2 rows, 11 s.
    predicted = predict(_costs(), [Calls(8, 3, 9), Calls(4, 2, 4)])

    assert predicted is not None
    assert predicted.small_seconds == pytest.approx(12.0)
    assert predicted.large_seconds == pytest.approx(3 * 12.0 + 2 * 11.0)
    assert predicted.decode_seconds == pytest.approx(70.0)
    assert predicted.encode_seconds == pytest.approx(2 * 3.5)
    assert predicted.total_seconds == pytest.approx(77.0)


def test_a_model_that_is_not_called_costs_nothing_not_even_its_encoder() -> None:
    vanilla = predict(_costs(), [Calls(0, 10, 10)])
    small = predict(_costs(), [Calls(10, 0, 10)])

    assert vanilla is not None
    assert (vanilla.decode_seconds, vanilla.encode_seconds) == (100.0, 3.0)
    assert small is not None
    assert (small.decode_seconds, small.encode_seconds) == (10.0, 0.5)


def test_a_model_that_was_not_calibrated_gives_no_prediction() -> None:
    only_large = read_costs({"large": CALIBRATION["large"]})

    assert only_large is not None
    assert predict(only_large, [Calls(1, 1, 1)]) is None
    assert predict(only_large, [Calls(0, 1, 1)]) is not None
    assert read_costs({}) is None
