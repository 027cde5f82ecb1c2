"""When a loss counts, on figures worked out by hand (see `made_comparisons`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bild_bench.errors import UsageError
from bild_bench.report.compare import compare
from bild_bench.report.regressions import Limits, parse_limits, regressions, untested
from tests.made_comparisons import changed, slower, worse
from tests.made_reports import experiment
from tests.made_results import two_texts


def test_a_regression_is_beyond_the_limit_with_its_whole_interval(tmp_path: Path) -> None:
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", worse())
    comparison = compare(a, b)

    [found] = regressions(comparison, Limits(quality=18))

    assert (found.point, found.figure, found.limit) == ("bild fb=0.5 rb=2", "quality", 18)
    assert (found.loss, found.low, found.high) == pytest.approx((18.571, 17.143, 20), abs=1e-3)
    assert "quality worse by 18.57 points [17.14, 20.00], limit 18 (rougeL 78.57 to 60.00" in found.line
    assert regressions(comparison, Limits(quality=18.6)) == []
    assert regressions(compare(b, a), Limits(quality=0)) == []


def test_a_loss_whose_interval_reaches_zero_is_no_regression(tmp_path: Path) -> None:
    # Only text b loses: drawn as aa the loss is 0.
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", changed("b", output_text="the"))
    comparison = compare(a, b)

    [_, point] = comparison.sections[0].points
    assert point.quality.difference.value == pytest.approx(-(400 / 7 - 40) / 2)
    assert regressions(comparison, Limits(quality=1)) == []


def test_speed_is_lost_in_speed_ups_and_time_in_seconds(tmp_path: Path) -> None:
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", slower())
    comparison = compare(a, b)

    speed, time = (regressions(comparison, limits) for limits in (Limits(speed=49), Limits(time=99)))

    assert [found.figure for found in speed] == ["decoding speed-up", "total speed-up"]
    assert [found.loss for found in speed] == pytest.approx([50, 50])
    assert [found.figure for found in time] == ["decoding time", "total time"]
    assert [found.loss for found in time] == pytest.approx([100, 100])
    assert regressions(comparison, Limits(speed=50.1, time=100.1)) == []
    assert regressions(compare(b, a), Limits(speed=0, time=0)) == []


def test_what_cannot_be_tested_is_said(tmp_path: Path) -> None:
    one = experiment(tmp_path / "one", {"a": two_texts()["a"]})
    far = experiment(tmp_path / "far", machine="m2")

    [_, line] = untested(compare(one, one), Limits(quality=1))
    [_, other] = untested(compare(experiment(tmp_path / "a"), far), Limits(quality=1, time=1))

    assert line == "bild fb=0.5 rb=2: not tested: quality (no interval: a single text)"
    assert other.endswith("not tested: decoding time (the machines differ), total time (the machines differ)")


def test_limits_are_read_and_impossible_ones_refused() -> None:
    assert parse_limits("quality:0.5,speed:5%") == Limits(0.5, 5, None)
    assert parse_limits(" speed: 0 , time:12.5 % ") == Limits(None, 0, 12.5)
    for text, problem in (
        ("qualty:1", "did you mean 'quality'"),
        ("", "not known"),
        ("quality", "0 or more points"),
        ("quality:5%", "without %"),
        ("quality:-1", "0 or more points"),
        ("speed:nan", "0 or more per cent"),
        ("speed:inf%", "0 or more per cent"),
        ("speed:1,speed:2", "has speed twice"),
    ):
        with pytest.raises(UsageError, match=problem):
            parse_limits(text)
