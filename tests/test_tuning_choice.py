"""The rule that chooses thresholds, and the texts that must not be the same."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bild_bench.errors import DataError
from bild_bench.held_out import Texts, shared_texts
from bild_bench.measure.intervals import Estimate
from bild_bench.measure.quality import Score
from bild_bench.report.summary import PointSummary
from bild_bench.setup import silent
from bild_bench.tasks import load_task
from bild_bench.tuning import choose_point
from tests.made_data import jsonl


def figures(name: str, quality: float | None, speed: float | None, **changes: Any) -> PointSummary:
    known: dict[str, Any] = {
        **dict.fromkeys(field.name for field in fields(PointSummary)),
        "point_id": name,
        "role": "point",
        "texts": 10,
        "paired_texts": 10,
        "quality": None if quality is None else Score(value=quality, metric="bleu", signature="made"),
        "speedup_decoding": None if speed is None else Estimate(speed, speed, speed),
    }
    return PointSummary(**{**known, **changes})


VANILLA = figures("vanilla", 30.0, 1.0, role="baseline")


def chosen(max_drop: float, *points: PointSummary) -> str | None:
    found = choose_point([VANILLA, *points], max_drop)
    return None if found is None else found.point_id


def test_the_fastest_point_within_the_drop_is_chosen() -> None:
    grid = [
        figures("slow", 30.5, 1.2),
        figures("good", 30.0, 1.4),
        figures("one", 29.0, 1.9),
        figures("bad", 28.9, 3.0),
    ]
    assert [chosen(drop, *grid) for drop in (0, 0.5, 1, 1.1)] == ["good", "good", "one", "bad"]


def test_of_equally_fast_points_the_better_one_is_chosen() -> None:
    assert chosen(1, figures("a", 29.5, 1.5), figures("b", 30.2, 1.5), figures("c", 29.9, 1.5)) == "b"


def test_a_score_that_is_lower_by_rounding_alone_is_no_loss() -> None:
    assert chosen(0, figures("a", 30.0 - 1e-12, 1.5)) == "a"
    assert chosen(0.1 + 0.2, figures("a", 30.0 - 0.3, 1.5)) == "a"
    assert chosen(0, figures("a", 30.0 - 1e-6, 1.5)) is None


def test_vanilla_is_never_found_even_where_all_others_are_slower() -> None:
    assert chosen(0) is None
    assert chosen(0, figures("slower", 30.0, 0.8)) == "slower"


@pytest.mark.parametrize(
    "changes",
    [
        {"texts": 9, "paired_texts": 9},
        {"paired_texts": 9},
        {"texts": 11, "paired_texts": 10},
        {"quality": None},
        {"speedup_decoding": None},
    ],
)
def test_a_point_without_a_score_over_all_texts_is_not_chosen(changes: dict[str, Any]) -> None:
    assert chosen(100, replace(figures("a", 31.0, 2.0), **changes)) is None


def test_nothing_is_chosen_where_vanilla_has_no_score() -> None:
    assert choose_point([replace(VANILLA, quality=None), figures("a", 30.0, 2.0)], 1) is None


@given(
    st.lists(st.tuples(st.floats(0, 60), st.floats(0.1, 9)), max_size=8),
    st.floats(0, 30),
    st.floats(0, 30),
)
def test_what_is_chosen_qualifies_and_nothing_that_qualifies_is_faster(
    grid: list[tuple[float, float]], drop: float, more: float
) -> None:
    points = [figures(str(number), quality, speed) for number, (quality, speed) in enumerate(grid)]
    able = [speed for quality, speed in grid if quality >= 30 - drop - 1e-9]
    found = choose_point([VANILLA, *points], drop)
    assert (found is None) == (not able)
    if found is not None and found.speedup_decoding is not None:
        assert found.speedup_decoding.value == max(able)
        larger = choose_point([VANILLA, *points], drop + more)
        assert larger is not None
        assert larger.speedup_decoding is not None
        assert larger.speedup_decoding.value >= found.speedup_decoding.value


def rows(*numbers: int) -> list[dict[str, str]]:
    return [{"source": f"Satz {number}.", "target": "the cat sat"} for number in numbers]


def shared(folder: Path, validation: list[Any], test: list[Any]) -> int:
    files = [jsonl(folder / "val.jsonl", validation), jsonl(folder / "test.jsonl", test)]
    return shared_texts(load_task("custom"), Texts(str(files[0]), "v"), Texts(str(files[1]), "t"), silent)


def test_texts_that_are_on_both_sides_are_counted(tmp_path: Path) -> None:
    assert shared(tmp_path, rows(0, 1, 2), rows(3, 4)) == 0
    assert shared(tmp_path, rows(0, 1, 2), rows(2, 3, 4)) == 1


def test_test_texts_that_were_chosen_on_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^--test-data: .*all 2 test texts are validation texts"):
        shared(tmp_path, rows(0, 1, 2), rows(2, 1))
    with pytest.raises(DataError, match="the 3 test texts contain all 2 validation texts"):
        shared(tmp_path, rows(2, 1), rows(0, 1, 2))
