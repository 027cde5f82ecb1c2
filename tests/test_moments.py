"""Calls timed at several moments are one calibration, and tell whether the machine was busy at some of them."""

from __future__ import annotations

from typing import Any

import pytest

from bild_bench.measure.moments import drift_of, merged, moments_after


def moment(large: float, small: float, encode: float = 1.0) -> dict[str, Any]:
    return {
        "source_tokens": 9,
        "repeats": 3,
        "large": {"encode_seconds": encode, "rows": {"1": large, "4": 2 * large}},
        "small": {"encode_seconds": encode / 2, "rows": {"1": small}},
    }


def test_the_median_of_the_moments_counts_and_the_moments_are_kept() -> None:
    # Another program had the machine at the first moment: calls take four to ten times as long.
    moments = [moment(8.0, 1.0, 6.0), moment(2.0, 0.1), moment(2.2, 0.11)]
    found = merged(moments)
    assert found["large"] == {"encode_seconds": 1.0, "rows": {"1": 2.2, "4": 4.4}}
    assert found["small"] == {"encode_seconds": 0.5, "rows": {"1": 0.11}}
    assert (found["source_tokens"], found["repeats"], found["moments"]) == (9, 3, moments)
    # Against the medians of each kind the first moment is at 3.64, 3.64 and 9.1, the second at 0.91 each.
    assert found["drift"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("kinds", "drift"),
    [
        ([[1.0, 1.0, 1.0]], 1.0),
        ([[2.0, 2.0], [3.0, 3.0]], 1.0),
        # One kind of call that was held up once is no drift.
        ([[1.0, 1.0, 50.0], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0]], 1.0),
        ([[1.0, 1.0, 2.0], [2.0, 2.0, 4.0], [3.0, 3.0, 6.0]], 2.0),
        ([[1.0]], 1.0),
        ([[0.0, 0.0]], None),
        ([], None),
    ],
)
def test_drift(kinds: list[list[float]], drift: float | None) -> None:
    assert drift_of(kinds) == drift


@pytest.mark.parametrize(
    ("texts", "after"), [(1, {1}), (2, {1, 2}), (3, {1, 2, 3}), (60, {15, 30, 45, 60}), (10, {3, 5, 8, 10}), (0, set())]
)
def test_moments_lie_between_the_texts_and_at_the_end(texts: int, after: set[int]) -> None:
    assert moments_after(texts) == after
