"""Which points of two result sets are compared, and which are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bild_bench.errors import DataError, UsageError
from bild_bench.report.compare import compare
from tests.made_comparisons import slower
from tests.made_reports import experiment, grid
from tests.made_results import POINT, two_texts


def test_points_that_one_set_lacks_are_listed(tmp_path: Path) -> None:
    a = grid(tmp_path / "a", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])
    b = grid(tmp_path / "b", [(0.5, 1.0, 1.0), (0.9, 3.0, 2.0)])

    comparison = compare(a, b)

    assert [point.point for point in comparison.sections[0].points] == ["vanilla", "bild fb=0.5 rb=1"]
    assert comparison.only_a == ((str(a), "bild fb=0.5 rb=2"),)
    assert comparison.only_b == ((str(b), "bild fb=0.9 rb=3"),)


def test_of_several_experiments_those_are_matched_that_differ_least(tmp_path: Path) -> None:
    narrow, wide = {"dtype": "bfloat16"}, {"dtype": "float32"}
    for side, order in (("a", (narrow, wide)), ("b", (wide, narrow))):
        for number, configuration in enumerate(order):
            made = f"2026-11-29T1{number}:00:00Z"
            experiment(tmp_path / side / configuration["dtype"], configuration=configuration, created_at=made)

    comparison = compare(tmp_path / "a", tmp_path / "b")

    assert len(comparison.sections) == 2
    for section in comparison.sections:
        assert section.a.directory.name == section.b.directory.name
        assert len(section.points) == 2
    assert (comparison.only_a, comparison.only_b) == ((), ())


def test_of_repeats_the_newest_is_taken_and_the_other_listed(tmp_path: Path) -> None:
    experiment(tmp_path / "a" / "old", slower(), created_at="2026-11-29T10:00:00Z")
    experiment(tmp_path / "a" / "new", created_at="2026-11-29T11:00:00Z")
    b = experiment(tmp_path / "b")

    comparison = compare(tmp_path / "a", b)

    assert comparison.sections[0].a.directory.name == "new"
    assert [Path(directory).name for directory, _ in comparison.only_a] == ["old", "old"]


def test_points_spread_over_experiments_are_found(tmp_path: Path) -> None:
    grid(tmp_path / "a" / "one", [(0.5, 1.0, 1.0)])
    grid(tmp_path / "a" / "two", [(0.5, 2.0, 2.0)])
    b = grid(tmp_path / "b", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])

    comparison = compare(tmp_path / "a", b)
    found = {point.point for section in comparison.sections for point in section.points}

    assert found == {"vanilla", "bild fb=0.5 rb=1", "bild fb=0.5 rb=2"}
    assert [label for _, label in comparison.only_a] == ["vanilla"]


def test_what_cannot_be_compared_is_refused_and_named(tmp_path: Path) -> None:
    a = experiment(tmp_path / "a")
    elsewhere = {"c": [replace(row, text_id="c") for row in two_texts()["a"]]}
    strangers = experiment(tmp_path / "strangers", elsewhere)
    metric = experiment(tmp_path / "metric", metric="bleu")
    other = {**POINT, "point": "bild fb=0.9 rb=2"}
    renamed = {name: [replace(row, point=other["point"]) for row in rows[1:]] for name, rows in two_texts().items()}
    points = experiment(tmp_path / "points", renamed, points=[other])
    (tmp_path / "empty").mkdir()

    for b, problem in (
        (strangers, "no text is the same"),
        (metric, "metric: 'rougeL': A's, and B's is bleu"),
        (points, "B has none of A's points"),
        (tmp_path / "empty", "B: .*holds no results"),
    ):
        with pytest.raises(DataError, match=problem):
            compare(a, b)
    with pytest.raises(UsageError, match="is not a directory"):
        compare(a, tmp_path / "nowhere")


def test_scores_made_in_two_ways_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = experiment(tmp_path / "a")
    monkeypatch.setattr("bild_bench.measure.quality._rouge_signature", lambda *_: "rougeL|nrefs:1|rouge-score:0.2")
    b = experiment(tmp_path / "b")

    with pytest.raises(DataError, match=r"signature.*differs: .* in .*a, rougeL\|rouge-score:0.2 in .*b"):
        compare(a, b)
