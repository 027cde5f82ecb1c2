"""The spread of speed-ups between runs, and intervals that allow for it: worked out by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from study import drift
from tests.test_study_choice import row


def experiment(seconds: dict[str, list[float]], texts: str = "ab", status: str = "ok") -> Any:
    """Seconds of each point, the baseline first, by text; the last point's last row has this status."""
    rows = [
        {"point_id": point, "text_id": text, "decode_seconds": taken, "total_seconds": taken + 1, "status": "ok"}
        for point, found in seconds.items()
        for text, taken in zip(texts, found, strict=True)
    ]
    rows[-1]["status"] = status

    points = [{"point_id": point, "role": "baseline" if point == "base" else "point"} for point in seconds]
    return SimpleNamespace(run=SimpleNamespace(points=points), samples=pd.DataFrame(rows))


def test_a_speed_up_is_of_summed_seconds_of_the_texts_asked_for() -> None:
    made = experiment({"base": [4.0, 6.0, 99.0], "fast": [2.0, 3.0, 1.0]}, "abc")
    assert drift.speedups(made, "decode_seconds", {"a", "b"}) == {"fast": 2.0}
    assert drift.speedups(made, "total_seconds", {"a"}) == {"fast": pytest.approx(5 / 3)}


def test_a_point_with_an_error_has_none() -> None:
    made = experiment({"base": [4.0, 6.0], "fast": [2.0, 3.0], "broken": [1.0, 1.0]}, status="error")
    assert drift.speedups(made, "decode_seconds", {"a", "b"}) == {"fast": 2.0}


def test_the_spread_is_that_of_logarithms_on_the_texts_that_all_runs_share() -> None:
    # On the shared text the speed-up is 2 at first and 2e later: a variance of (1/2)^2 + (1/2)^2 over one.
    first = experiment({"base": [4.0, 99.0], "fast": [2.0, 1.0]})
    second = experiment({"base": [4.0 * math.e], "fast": [2.0]}, "a")
    # A trial that repeats exactly halves the pooled variance.
    steady = experiment({"base": [4.0], "fast": [2.0]}, "a")
    assert drift.run_to_run([[first, second]])["speedup"] == pytest.approx(math.sqrt(0.5))
    assert drift.run_to_run([[first, second], [steady, steady]])["speedup"] == pytest.approx(0.5)


def test_rows_without_a_speed_up_in_common_say_nothing() -> None:
    alone = experiment({"base": [4.0]}, "a")
    assert math.isnan(drift.run_to_run([[alone, alone]])["speedup"])


def test_an_interval_over_texts_and_the_spread_between_runs_add_in_quadrature() -> None:
    made = row(speedup=2.0, speedup_low=2.0 / math.exp(0.3), speedup_high=2.0 * math.exp(0.4))
    # Student's t at 97.5 % with 12 degrees of freedom is 2.179; two runs differ by the square root of two as much.
    sigma = 0.4 / (2.179 * math.sqrt(2))
    found = drift.widened(made, {"speedup": sigma, "total_speedup": sigma})
    assert found.speedup_low == pytest.approx(2.0 * math.exp(-0.5))
    assert found.speedup_high == pytest.approx(2.0 * math.exp(math.hypot(0.4, 0.4)))
    assert (found.speedup, found.total_speedup_low, found.quality_low) == (2.0, None, made.quality_low)


def test_a_baseline_and_an_unknown_spread_change_no_interval() -> None:
    baseline = row(method="vanilla")
    assert drift.widened(baseline, {"speedup": 0.1}) == baseline
    assert drift.widened(row(), {"speedup": math.nan}) == row()
