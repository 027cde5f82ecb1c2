"""Beside the texts of a run: calls are timed at several moments, and texts whose threads had to wait are counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bild_bench import results, watch
from bild_bench.experiment import run_experiment
from bild_bench.watch import waited
from tests.made_data import jsonl
from tests.made_experiments import POINTS, TEXTS, figures_by_hand, request


@pytest.mark.parametrize(
    ("before", "after", "late"),
    [
        ((0, 0), (0, 0), False),
        ((0, 0), (100, 0), False),
        ((0, 0), (100, 20), False),
        ((0, 0), (100, 21), True),
        ((500, 400), (600, 410), False),
        ((500, 400), (600, 450), True),
    ],
)
def test_a_fifth_of_a_texts_calls_may_lack_a_thread(before: Any, after: Any, late: bool) -> None:
    assert waited(before, after) is late


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "texts.jsonl", TEXTS)


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Calls take 1 s, 2 s, … at one moment after another; where the moments go that were made."""
    figures_by_hand(monkeypatch)
    made: list[dict[str, Any]] = []

    def calibrate(*_: Any) -> dict[str, Any]:
        seconds = 1.0 + len(made)
        costs = {"encode_seconds": 0.5, "rows": {"1": seconds}}
        made.append({"source_tokens": 5, "large": costs, "small": costs})
        return made[-1]

    monkeypatch.setattr(watch, "calibrate", calibrate)
    return made


def record(directory: Path) -> Any:
    return results.read_run(directory)


def test_calls_are_timed_before_between_and_after_the_texts(
    texts: Path, tmp_path: Path, moments: list[dict[str, Any]]
) -> None:
    directory = run_experiment(request(texts, tmp_path / "out"), POINTS)
    found = record(directory).calibration
    # Before the eight texts, and after 2, 4, 6 and 8: 1 s to 5 s.
    assert found["moments"] == moments
    assert [moment["large"]["rows"]["1"] for moment in found["moments"]] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert (found["large"]["rows"], found["drift"]) == ({"1": 3.0}, pytest.approx(5.0))


def test_a_run_that_was_stopped_keeps_its_moments_and_its_late_texts(
    texts: Path, tmp_path: Path, moments: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    states: Iterator[tuple[int, int]] = iter([(0, 0), (10, 9), (10, 9), (20, 9), (20, 9), (20, 9)])
    monkeypatch.setattr(watch, "_team_state", lambda _: next(states, (20, 9)))
    texts_done = 0

    def track(todo: Any, *_: Any) -> Any:
        nonlocal texts_done
        for text in todo:
            if texts_done == 3:
                raise KeyboardInterrupt
            yield text
            texts_done += 1

    asked = request(texts, tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(asked, POINTS, track=track)
    stopped = record(tmp_path / "out")
    # Nine of the first text's ten calls lacked a thread.
    assert (stopped.status, stopped.environment_after) == ("running", {"late_texts": 1})
    assert len(stopped.calibration["moments"]) == 2
    run_experiment(asked, POINTS)
    ended = record(tmp_path / "out")
    assert (ended.status, ended.environment_after["late_texts"]) == ("complete", 1)
    # Five texts were left: once more before them, and after 2, 3, 4 and 5.
    assert ended.calibration["moments"] == moments
    assert len(moments) == 2 + 5


def test_calls_that_cannot_be_timed_end_no_run(texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures_by_hand(monkeypatch)

    def broken(*_: Any) -> dict[str, Any]:
        raise RuntimeError("no such id")

    monkeypatch.setattr(watch, "calibrate", broken)
    lines: list[str] = []
    directory = run_experiment(request(texts, tmp_path / "out"), POINTS, announce=lines.append)
    assert (record(directory).status, record(directory).calibration) == ("complete", {})
    assert lines == ["single calls could not be timed, so nothing is predicted (RuntimeError: no such id)"]


def test_the_drift_so_far_is_in_the_record_between_texts(texts: Path, tmp_path: Path, moments: list[Any]) -> None:
    seen: list[float | None] = []
    run_experiment(
        request(texts, tmp_path / "out"), POINTS, observe=lambda run, _: seen.append(run.calibration.get("drift"))
    )
    # After 2, 4, 6 and 8 texts: the slowest moment over the fastest.
    assert seen == pytest.approx([1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0])
