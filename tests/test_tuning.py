"""Thresholds from validation texts and figures from test texts: both experiments, by points made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.cli.tuned import remarks, table
from bild_bench.decoding.records import Counters, Decoded
from bild_bench.errors import RunError, UsageError
from bild_bench.held_out import Texts
from bild_bench.measure.intervals import Estimate
from bild_bench.measure.timing import Outcome
from bild_bench.plan import Point, make_point
from bild_bench.setup import Request
from bild_bench.tuning import Tuned, tune
from tests.made_data import jsonl

# What each point writes, and how many seconds it takes over it.
GRID = [make_point("bild", {"alpha_fb": alpha}) for alpha in (0.9, 0.5, 0.1)]
WRITES = {
    "vanilla": ("the cat sat", 1.0),
    "bild fb=0.9 rb=2": ("the cat sat", 0.5),
    "bild fb=0.5 rb=2": ("the cat", 0.25),
    "bild fb=0.1 rb=2": ("dogs", 0.125),
}
OUTPUTS = ["the cat sat", "the cat", "dogs"]


def rows(*numbers: int) -> list[dict[str, str]]:
    return [{"source": f"Satz {number}.", "target": "the cat sat"} for number in numbers]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Points that write and take what WRITES says, but for fb=0.9, which loses a word on what is not validation."""
    seen: list[list[str]] = []

    def time_text(pair: Any, source: Any, points: list[Point], *_: Any) -> list[Outcome]:
        seen.append(sorted(point.label for point in points))
        outcomes = []
        for place, point in enumerate(points):
            text, seconds = WRITES[point.label]
            if len(points) < 1 + len(GRID) and "fb=0.9" in point.label:
                text = "the cat"
            tokens = (100 + OUTPUTS.index(text), 1)
            done = Decoded(tokens, Counters(generated=2, drafted=2, discarded=0, large_tokens=0), False, ())
            outcomes.append(Outcome(point, place, done, 1.0, seconds))
        return outcomes

    monkeypatch.setattr("bild_bench.passes.time_text", time_text)
    monkeypatch.setattr("bild_bench.watch.calibrate", lambda *_: {"made": "up"})
    monkeypatch.setattr("bild_bench.models.pair.Pair.text", lambda pair, ids: OUTPUTS[ids[0] - 100])
    return seen


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Texts, Texts]:
    validation = jsonl(tmp_path / "val.jsonl", rows(0, 1, 2, 3))
    return Texts(str(validation), "validation"), Texts(str(jsonl(tmp_path / "test.jsonl", rows(5, 6, 7))), "test")


@pytest.fixture
def tuned(tmp_path: Path, sides: tuple[Texts, Texts], decoded: list[list[str]]) -> Callable[..., Tuned]:
    def run(*max_drops: float, points: list[Point] = GRID, **asked: Any) -> Tuned:
        known = {"task": "custom", "metric": "rougeL", "threads": 1, "warmup": 0, "out": tmp_path / "out"}
        return tune(Request(**{**known, **asked}), points, max_drops, *sides)

    return run


def test_points_are_chosen_on_validation_and_measured_on_test(tuned: Callable[..., Tuned], tmp_path: Path) -> None:
    found = tuned(0, 20)
    # ROUGE-L of "the cat" against "the cat sat": precision 1, recall 2/3, F1 0.8.
    for_no_loss, within_20 = found.choices
    assert [choice.point for choice in found.choices] == GRID[:2]
    assert [choice.on_validation.quality.value for choice in found.choices if choice.on_validation.quality] == [
        pytest.approx(100),
        pytest.approx(80),
    ]
    speeds = [choice.on_test.speedup_decoding for choice in found.choices]
    assert [speed.value for speed in speeds if speed is not None] == [2.0, 4.0]
    # Encoding takes 1 s everywhere: (1 + 1) / (1 + 0.25).
    assert within_20.on_test.speedup_total is not None
    assert within_20.on_test.speedup_total.value == pytest.approx(1.6)
    assert for_no_loss.difference is not None
    assert for_no_loss.difference.difference == pytest.approx(-20)
    assert for_no_loss.difference.texts == 3
    assert [choice.held for choice in found.choices] == [False, True]
    validation, test = (results.read(tmp_path / "out" / name) for name in ("validation", "test"))
    assert (validation.run.texts, validation.run.split, len(validation.run.points)) == (4, "validation", 4)
    assert (test.run.texts, test.run.split, len(test.run.points)) == (3, "test", 3)
    assert not set(validation.run.texts_expected) & set(test.run.texts_expected)


def test_a_point_that_is_chosen_twice_is_decoded_once(tuned: Callable[..., Tuned], decoded: list[list[str]]) -> None:
    found = tuned(20, 30)
    assert [choice.point for choice in found.choices] == [GRID[1], GRID[1]]
    assert decoded[-3:] == [["bild fb=0.5 rb=2", "vanilla"]] * 3


def test_a_drop_without_a_point_has_no_row(tuned: Callable[..., Tuned]) -> None:
    found = tuned(0, 20, points=GRID[1:])
    assert [choice.max_drop for choice in found.choices] == [20]
    assert found.missed == (0,)


def test_vanilla_is_chosen_where_all_points_within_the_drop_are_slower(
    tuned: Callable[..., Tuned], decoded: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WRITES, "bild fb=0.9 rb=2", ("the cat sat", 1.25))
    found = tuned(0, 20)
    no_loss, within_20 = found.choices
    assert (no_loss.point.label, within_20.point.label) == ("vanilla", "bild fb=0.5 rb=2")
    assert no_loss.slower is not None
    assert no_loss.slower.point == "bild fb=0.9 rb=2"
    assert no_loss.on_test.speedup_decoding is not None
    assert no_loss.on_test.speedup_decoding.value == 1.0
    assert no_loss.held is True
    assert decoded[-3:] == [["bild fb=0.5 rb=2", "vanilla"]] * 3
    assert (
        "no loss on validation: vanilla: the fastest point of the grid within it, bild fb=0.9 rb=2, is slower:"
        " 0.80x [0.80, 0.80] on the validation texts"
    ) in remarks(found)
    assert table(found).columns[2].header == "no loss on validation"


def test_a_point_that_is_slower_only_on_the_test_texts_is_said_so(
    tuned: Callable[..., Tuned], decoded: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tuned(0)
    [choice] = found.choices
    slow = replace(choice.on_test, speedup_decoding=Estimate(0.97, 0.9, 1.04))
    lines = remarks(replace(found, choices=(replace(choice, on_test=slow),)))
    assert "no loss on validation: slower than vanilla on the test texts: take vanilla" in lines
    lost = "20.00 points below vanilla on the test texts, more than was allowed on the validation texts"
    assert f"no loss on validation: {lost}" in lines


def test_the_test_texts_stay_unread_where_no_point_qualifies(
    tuned: Callable[..., Tuned], tmp_path: Path, decoded: list[list[str]]
) -> None:
    with pytest.raises(RunError, match=r"--max-drop: '0,5': no point .*\(vanilla 100\.00, the best 80\.00\); widen"):
        tuned(0, 5, points=GRID[1:])
    assert len(decoded) == 4
    assert not (tmp_path / "out" / "test").exists()


def test_the_same_again_decodes_nothing(tuned: Callable[..., Tuned], decoded: list[list[str]]) -> None:
    before = tuned(0, 20)
    texts = len(decoded)
    after = tuned(0, 20)
    assert (texts, len(decoded)) == (7, 7)
    assert after.choices == before.choices


def test_a_stopped_tune_goes_on_where_it_was(
    tuned: Callable[..., Tuned], decoded: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = results.write_text

    def stop_at_the_sixth(*arguments: Any) -> None:
        if len(decoded) == 6:
            raise KeyboardInterrupt
        write(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(results, "write_text", stop_at_the_sixth)
        with pytest.raises(KeyboardInterrupt):
            tuned(0, 20)
    found = tuned(0, 20)
    assert len(decoded) == 6 + 2
    assert [choice.on_test.texts for choice in found.choices] == [3, 3]


def test_without_a_directory_the_same_command_finds_its_own(
    tuned: Callable[..., Tuned], decoded: list[list[str]], tmp_path: Path
) -> None:
    first = tuned(20, out=None, results=tmp_path / "results", command="one")
    again = tuned(20, out=None, results=tmp_path / "results", command="other")
    other = tuned(0, out=None, results=tmp_path / "results")
    assert first.directory.parent == tmp_path / "results"
    assert first.directory == again.directory != other.directory
    assert len(decoded) == 2 * 7


@pytest.mark.parametrize(
    ("max_drops", "asked", "said"),
    [
        ((-1.0,), {}, "--max-drop: -1.0: must be 0 or more"),
        ((float("inf"),), {}, "--max-drop: inf: must be 0 or more"),
        ((0.0,), {"points": [make_point("vanilla", {})]}, "--mode: 'vanilla'"),
        ((0.0,), {"prune": True}, "prune: True: cannot be used with tune"),
        ((0.0,), {"budget": 5.0}, "budget: 5.0: cannot be used with tune"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_decoded(
    max_drops: tuple[float, ...], asked: dict[str, Any], said: str, tuned: Callable[..., Tuned], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=f"^{said}"):
        tuned(*max_drops, **asked)
    assert not (tmp_path / "out").exists()


def test_shared_texts_are_warned_of(tuned: Callable[..., Tuned], sides: tuple[Texts, Texts], tmp_path: Path) -> None:
    jsonl(tmp_path / "test.jsonl", rows(3, 6, 7))
    found = tuned(20)
    assert found.shared_texts == 1
    assert "test: texts that are validation texts too, before sampling: 1" in found.warnings
