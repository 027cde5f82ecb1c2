"""Two result sets side by side, on figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bild_bench.measure.intervals import Estimate
from bild_bench.report.compare import Comparison, compare
from bild_bench.report.compare_points import PointPair
from bild_bench.report.regressions import Limits, regressions, untested
from tests.made_comparisons import changed, slower, worse
from tests.made_reports import MODELS, experiment
from tests.made_results import BASELINE, POINT, failed_sample, two_texts


def point_of(comparison: Comparison, label: str = "bild fb=0.5 rb=2") -> PointPair:
    [found] = [point for section in comparison.sections for point in section.points if point.point == label]
    return found


def figures(estimate: Estimate | None) -> tuple[float, float, float]:
    assert estimate is not None
    return estimate.value, estimate.low, estimate.high


def test_a_set_against_itself_differs_in_nothing(tmp_path: Path) -> None:
    directory = experiment(tmp_path / "x")

    comparison = compare(directory, directory)
    [section] = comparison.sections
    point = point_of(comparison)

    assert section.differences == ()
    assert section.same_machine
    assert [found.point for found in section.points] == ["vanilla", "bild fb=0.5 rb=2"]
    assert (comparison.only_a, comparison.only_b) == ((), ())
    assert figures(point.quality.difference) == (0, 0, 0)
    assert figures(point.decoding.time_ratio) == (1, 1, 1)
    assert point.identical_pct == 100
    assert regressions(comparison, Limits(0, 0, 0)) == []


def test_speed_ups_stand_on_their_own_baselines_and_seconds_on_each_other(tmp_path: Path) -> None:
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", slower())

    point = point_of(compare(a, b))

    for speed, before in ((point.decoding, 3.0), (point.total, 2.0)):
        assert speed.a is not None
        assert speed.b is not None
        assert (speed.a.value, speed.b.value) == pytest.approx((before, before / 2))
        assert figures(speed.speedup_ratio) == pytest.approx((0.5, 0.5, 0.5))
        assert figures(speed.time_ratio) == pytest.approx((2, 2, 2))
    assert point.ms_per_token_a == pytest.approx(1000 * 1.5 / 30)
    assert point.ms_per_token_b == pytest.approx(1000 * 3.0 / 30)


def test_the_time_interval_is_resampled_over_texts(tmp_path: Path) -> None:
    # Ratios of the texts are 3 and 1, of the sums 2.1 / 1.5: two texts can be drawn as aa, ab or bb.
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", changed("a", decode_seconds=0.9))

    assert figures(point_of(compare(a, b)).decoding.time_ratio) == pytest.approx((1.4, 1, 3))


def test_quality_is_what_b_has_more_with_an_interval_paired_over_texts(tmp_path: Path) -> None:
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", worse())

    point = point_of(compare(a, b))

    assert (point.quality.a, point.quality.b) == pytest.approx((78.571, 60), abs=1e-3)
    # The texts lose 20 and 17.14 points: unpaired, the interval would be more than 60 points wide.
    assert figures(point.quality.difference) == pytest.approx((-18.571, -20, -17.143), abs=1e-3)
    assert point.quality.signature.startswith("rougeL|nrefs:1|")


def test_on_another_machine_no_seconds_are_compared(tmp_path: Path) -> None:
    texts = {name: [replace(row, machine="m2") for row in rows] for name, rows in slower().items()}
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", texts, machine="m2")

    comparison = compare(a, b)
    [section] = comparison.sections
    point = point_of(comparison)

    assert not section.same_machine
    assert (point.decoding.time_ratio, point.total.time_ratio) == (None, None)
    assert figures(point.decoding.speedup_ratio) == pytest.approx((0.5, 0.5, 0.5))
    assert "the machines differ: seconds are not compared, only speed-ups" in section.notes


def test_of_two_runs_on_other_threads_the_threads_are_named(tmp_path: Path) -> None:
    texts = {name: [replace(row, machine="m2") for row in rows] for name, rows in slower().items()}
    a = experiment(tmp_path / "a", environment={"device": "cpu", "threads": 2})
    b = experiment(tmp_path / "b", texts, machine="m2", environment={"device": "cpu", "threads": 1})

    [section] = compare(a, b).sections

    why = "A computed on 2 threads and B on 1"
    assert f"{why}: seconds are not compared, only speed-ups; give both runs the same --threads" in section.notes
    assert not any("machines differ" in note for note in section.notes)


def test_what_differs_is_named_with_both_values(tmp_path: Path) -> None:
    a = experiment(tmp_path / "a", environment={"device": "cpu", "threads": 2, "torch": "2.13.0", "load": 0.1})
    b = experiment(
        tmp_path / "b",
        environment={"device": "cpu", "threads": 1, "torch": "2.14.0", "load": 3.0},
        configuration={"dtype": "bfloat16", "out": "elsewhere"},
        models={**MODELS, "small": {"fingerprint": "S2"}},
        code_version="0.2.0",
        split="validation",
    )

    [section] = compare(a, b).sections
    found = {difference.field: (difference.a, difference.b) for difference in section.differences}

    assert found == {
        "split": ("test", "validation"),
        "dtype": ("float32", "bfloat16"),
        "threads": ("2", "1"),
        "code version": ("0.1.0", "0.2.0"),
        "small model": ("S1", "S2"),
        "torch": ("2.13.0", "2.14.0"),
    }


def test_only_shared_texts_count(tmp_path: Path) -> None:
    a = experiment(tmp_path / "a")
    b = experiment(tmp_path / "b", {"a": two_texts()["a"]})

    [section] = compare(a, b).sections
    point = section.points[1]

    assert (section.texts, point.texts) == (1, 1)
    assert point.quality.a == point.quality.b == 100
    assert point.decoding.a is not None
    assert point.decoding.a.value == pytest.approx(5)
    assert "figures rest on the shared texts alone (1): A has 2, B 1" in section.notes


def test_failed_texts_count_for_neither_and_are_told(tmp_path: Path) -> None:
    texts = two_texts()
    texts["b"][1] = failed_sample(POINT, text_id="b", text_index=1, references=["the cat lay down"])
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", texts)

    comparison = compare(a, b)
    point = point_of(comparison)

    assert (point.texts, point.failed_a, point.failed_b) == (1, 0, 1)
    assert point.quality.a == 100
    assert "bild fb=0.5 rb=2: failed and left out: 1 in B" in comparison.sections[0].notes
    assert point_of(comparison, "vanilla").texts == 2


def test_without_a_baseline_there_is_no_speed_up_but_all_else(tmp_path: Path) -> None:
    texts = {name: rows[1:] for name, rows in slower().items()}
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", texts, points=[POINT])

    comparison = compare(a, b)
    point = point_of(comparison)

    assert point.decoding.a is not None
    assert (point.decoding.b, point.decoding.speedup_ratio) == (None, None)
    assert figures(point.decoding.time_ratio) == pytest.approx((2, 2, 2))
    assert "B has no baseline" in untested(comparison, Limits(speed=5))[0]


def test_several_draws_are_one_text(tmp_path: Path) -> None:
    drawn = {name: [*rows, *(replace(row, draw=1) for row in rows)] for name, rows in two_texts().items()}
    configuration = {"dtype": "float32", "draws": 2}
    a = experiment(tmp_path / "a", drawn, configuration=configuration)

    comparison = compare(a, a)

    assert point_of(comparison).texts == 2
    assert "A has several draws per text: quality is that of the first" in comparison.sections[0].notes


def test_a_setting_that_the_label_does_not_tell_is_named(tmp_path: Path) -> None:
    other = {**POINT, "settings": {**POINT["settings"], "max_draft": 10}}
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", points=[BASELINE, other])

    assert "bild fb=0.5 rb=2: max_draft is None in A and 10 in B" in compare(a, b).sections[0].notes


def test_a_baseline_that_itself_changed_is_told(tmp_path: Path) -> None:
    texts = {
        name: [replace(base, decode_seconds=2 * base.decode_seconds), point]
        for name, (base, point) in two_texts().items()
        if base.decode_seconds is not None
    }
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", texts)

    notes = compare(a, b).sections[0].notes

    assert any(note.startswith("vanilla: the baseline itself took 2.00 times A's seconds") for note in notes)
