from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench.report.summary import Summary, summarise
from bild_bench.report.table import caption_of
from bild_bench.results import Experiment
from bild_bench.schema import SampleRecord, sample_frame, sample_table
from tests.made_results import BASELINE, POINT, failed_sample, made_run, made_sample


def summary_of(samples: list[SampleRecord], **run: Any) -> Summary:
    return summarise(Experiment(made_run(**run), sample_frame(sample_table(samples)), Path("nowhere")))


def numbered(count: int, point: dict[str, Any], **changes: Any) -> list[SampleRecord]:
    """The same sample as `count` texts."""
    return [made_sample(point, text_id=f"t{i}", text_index=i, **changes) for i in range(count)]


def test_a_run_with_nothing_to_say_warns_of_nothing() -> None:
    same = {"references": ["the cat sat"]}
    samples = numbered(30, BASELINE, **same) + numbered(30, POINT, **same)
    assert summary_of(samples, texts=30, status="complete").warnings == []


def warnings_with(count: int = 30, point: dict[str, Any] | None = None, **run: Any) -> list[str]:
    samples = numbered(count, BASELINE) + numbered(count, POINT, **({} if point is None else point))
    return summary_of(samples, **{"texts": count, "status": "complete", **run}).warnings


def test_a_few_texts_whose_threads_waited_are_no_warning() -> None:
    few, none = warnings_with(environment_after={"late_texts": 3}), warnings_with()
    assert few == none


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (warnings_with(29), "fewer than 30 texts (29)"),
        (warnings_with(data={"expected": 8079, "total": 300}), "only 300 of 8,079 texts of the test split were there"),
        (
            warnings_with(data={"unknown_source_tokens": 41, "texts_with_unknown": 12}),
            "41 source tokens unknown to the tokenizer, in 12 of 30 texts",
        ),
        (warnings_with(point={"output_text": " "}), "bild fb=0.5 rb=2: 30 of its outputs are empty"),
        (
            warnings_with(data={"source_column": "de", "target_column": "de"}),
            "source and references are the same column (de): scores mean nothing",
        ),
        (warnings_with(configuration={"warmup": 0}), "first calls, which are slower, are timed"),
        (warnings_with(status="running", texts=40), "not complete: 30 of 40 texts so far"),
        (warnings_with(environment_after={"busy": "The machine was busy."}), "The machine was busy."),
        (
            warnings_with(environment_after={"late_texts": 4}),
            "threads waited for a busy core in 4 of 30 texts: use --threads 1",
        ),
        (warnings_with(point={"generated": 9}), "bild fb=0.5 rb=2: outputs are 0.90 times as long"),
        (warnings_with(point={"generated": 11}), "bild fb=0.5 rb=2: outputs are 1.10 times as long"),
        (warnings_with(point={"total_seconds": 4.0}), "bild fb=0.5 rb=2: slower than the baseline: 0.50x"),
        (warnings_with(point={"source_truncated": True}), "30 of 30 sources were cut"),
        (warnings_with(point={"hit_limit": True}), "bild fb=0.5 rb=2: 30 of the outputs ended at the length limit"),
    ],
)
def test_each_warning_stands_alone_and_names_its_point(found: list[str], expected: str) -> None:
    (warning,) = found
    assert expected in warning


def test_texts_without_a_reference_are_counted_and_in_no_score() -> None:
    same = {"references": ["the cat sat"]}
    samples = [sample for point in (BASELINE, POINT) for sample in numbered(30, point, **same)]
    for point in (BASELINE, POINT):
        for number, references in enumerate(([], [""], [" ", ""])):
            samples.append(made_sample(point, text_id=f"n{number}", text_index=30 + number, references=references))
    summary = summary_of(samples, texts=33, status="complete")
    assert summary.warnings == ["3 of 33 texts have no reference (null or empty): timed but not scored"]
    # ROUGE-L of the thirty is 100 each; three zeros among them would make it 90.9.
    assert [(point.texts, point.quality.value if point.quality else None) for point in summary.points] == [
        (33, 100.0)
    ] * 2


def test_without_any_reference_there_is_no_score() -> None:
    samples = numbered(30, BASELINE, references=[""]) + numbered(30, POINT, references=[])
    summary = summary_of(samples, texts=30, status="complete")
    assert summary.warnings == ["every reference is empty: nothing is scored"]
    assert [point.quality for point in summary.points] == [None, None]


def test_failed_texts_are_warned_of_with_the_first_reason() -> None:
    samples = numbered(30, BASELINE) + numbered(30, POINT)
    samples += [failed_sample(text_id=f"e{i}", text_index=30 + i, error=f"reason {i}") for i in range(2)]
    (warning,) = summary_of(samples, status="complete").warnings
    assert "bild fb=0.5 rb=2: 2 failed" in warning
    assert "reason 0" in warning


@pytest.mark.parametrize(
    "run",
    [
        {"data": {"expected": 300, "total": 300, "empty_references": 29, "source_column": "a", "target_column": "b"}},
        {"data": {"expected": None, "total": 300}, "configuration": {"warmup": 1}},
    ],
)
def test_no_warning_of_a_run_that_is_as_it_should_be(run: dict[str, Any]) -> None:
    assert warnings_with(**run) == []


def test_the_table_and_the_warnings_count_the_same_texts() -> None:
    samples = numbered(9, BASELINE, source_truncated=True) + numbered(9, POINT, source_truncated=True)
    for point in (BASELINE, POINT):
        samples += [failed_sample(point, text_id=f"e{i}", text_index=9 + i, source_truncated=True) for i in range(2)]
    run = made_run(texts=11, status="complete")
    summary = summarise(Experiment(run, sample_frame(sample_table(samples)), Path("nowhere")))
    assert "fewer than 30 texts (9 of 11): too few to tell small differences apart" in summary.warnings
    assert "9 of 9 sources were cut at the source limit" in summary.warnings
    assert caption_of(summary, run).startswith("9 of 11 texts of embedded/iwslt17 (test)")


@pytest.mark.parametrize("point", [{"generated": 10}, {"total_seconds": 2.0}, {"hit_limit": None}])
def test_no_warning_without_a_difference(point: dict[str, Any]) -> None:
    assert warnings_with(point=point) == []


def test_an_uncertain_loss_of_speed_is_not_called_slower() -> None:
    samples = numbered(30, BASELINE)
    for i, sample in enumerate(numbered(30, POINT)):
        samples.append(replace(sample, total_seconds=4.0 if i % 2 else 0.1))  # 60 s against 61.5 s
    summary = summary_of(samples, status="complete")
    assert summary.points[1].speedup_total is not None
    assert summary.points[1].speedup_total.value < 1
    assert summary.warnings == []


CALM = {**POINT, "method": "calm", "lossless": False}


@pytest.mark.parametrize(
    ("point", "models", "told"),
    [
        (CALM, {}, True),
        (CALM, {"large": {"objective": None}}, True),
        (CALM, {"large": {"objective": "plain"}}, True),
        (CALM, {"large": {"objective": "calm"}}, False),
        (CALM, {"large": {"objective": "early-exit"}}, False),
        ({**CALM, "lossless": True}, {}, False),
        (POINT, {}, False),
    ],
)
def test_leaving_early_without_a_training_for_it_is_warned_of(
    point: dict[str, Any], models: dict[str, Any], told: bool
) -> None:
    found = warnings_with(points=[BASELINE, point], models=models)
    assert (found == ["the checkpoint does not say that it was trained for early exit: expect noise"]) is told


def test_what_several_points_have_in_common_is_one_line() -> None:
    names = [f"bild {letter}" for letter in "abcdefgh"]
    points = [{**POINT, "point_id": f"{place:016d}", "point": name} for place, name in enumerate(names, start=1)]
    samples = numbered(30, BASELINE)
    for place, point in enumerate(points):
        changes = {"hit_limit": True, "generated": 11} if place < 2 else {}
        samples += numbered(30, point, total_seconds=4.0, **changes)

    found = summary_of(samples, texts=30, status="complete", points=[BASELINE, *points]).warnings

    assert found == [
        "outputs that ended at the length limit: bild a 30, bild b 30",
        "outputs longer or shorter than the baseline's (compare per token): bild a 1.10 times, bild b 1.10 times",
        "slower than the baseline, in total time: bild a 0.50x, bild b 0.50x, bild c 0.50x, bild d 0.50x,"
        " bild e 0.50x, bild f 0.50x and 2 more",
    ]
