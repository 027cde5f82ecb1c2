"""The sweep command in this process: what it decodes, plans, budgets, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bild_bench import results
from tests.command_line import QUICK, Ended, call
from tests.made_data import jsonl
from tests.made_experiments import TEXTS, figures_by_hand

GRID = ("--alpha-fb", "0.3,0.6", "--alpha-rb", "2,inf")
LABELS = ["vanilla", "bild fb=0.3 rb=2", "bild fb=0.3 rb=never", "bild fb=0.6 rb=2", "bild fb=0.6 rb=never"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "texts.jsonl", TEXTS)


@pytest.fixture
def custom(texts: Path) -> tuple[str, ...]:
    """A sweep over eight texts of our own, without its grid."""
    return ("sweep", "--task", "custom", "--data", str(texts), *QUICK)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return figures_by_hand(monkeypatch)


def succeeded(*arguments: str | Path) -> Ended:
    ended = call(*arguments)
    assert ended.code == 0, ended.err
    return ended


def test_every_text_by_every_point_and_strict_json(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = succeeded("sweep", "--task", "iwslt17", "--limit", "2", *QUICK, *GRID, "--out", out, "--json")
    shown = json.loads(ended.out)
    assert [point["point"] for point in shown["points"]] == LABELS
    assert shown["directory"] == str(out)
    samples: Any = results.read(out).samples
    assert list(samples.point) == LABELS * 2
    assert set(samples.status) == {"ok"}
    for _, text in samples.groupby("text_id"):
        assert sorted(text.order) == [0, 1, 2, 3, 4]
    # Without --json there is a table, and again no decoding.
    again = succeeded("sweep", "--task", "iwslt17", "--limit", "2", *QUICK, *GRID, "--out", out)
    assert "is complete already: nothing is decoded" in again.err
    assert "fb=0.6 rb=never" in again.out


def test_a_dry_run_prints_the_points_and_writes_nothing(
    custom: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    ended = succeeded(*custom, *GRID, "--dry-run", "--warmup", "2")
    *points, estimate = ended.out.splitlines()
    assert points == LABELS
    assert estimate.startswith("5 points, the baseline among them; 8 texts; about ")
    assert sorted(tmp_path.iterdir()) == before


def test_a_dry_run_judges_by_a_text_even_where_no_warm_up_is_asked_for(
    custom: Sequence[str], by_hand: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([100.0, 107.5])
    monkeypatch.setattr("bild_bench.passes.time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    ended = succeeded(*custom, *GRID, "--dry-run", "--json")
    assert json.loads(ended.out) == {"points": LABELS, "texts": 8, "estimated_seconds": 8 * 7.5}
    assert by_hand == [LABELS]


class Seconds:
    """A clock for the budget: each text takes ten seconds, and loading three."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from bild_bench import experiment

        self.now, real_prepare, real_decode = 0.0, experiment.prepare, experiment.decode_text

        def after(seconds: float, real: Any) -> Any:
            def call(*arguments: Any) -> Any:
                self.now += seconds
                return real(*arguments)

            return call

        monkeypatch.setattr(experiment, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(experiment, "prepare", after(3, real_prepare))
        monkeypatch.setattr(experiment, "decode_text", after(10, real_decode))


def test_a_budget_stops_in_time_with_balanced_data_and_the_same_command_goes_on(
    custom: Sequence[str], by_hand: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, out = Seconds(monkeypatch), tmp_path / "out"
    command = (*custom, *GRID, "--out", str(out), "--budget")
    for texts_there, seconds in ((3, 33.0), (6, 33.0), (8, 23.0)):
        clock.now = 0.0
        # 3 s to load and 10 s a text: a fourth text would end after 43 s.
        ended = succeeded(*command, "0.7m")
        assert clock.now == seconds
        assert len(results.finished_texts(out)) == texts_there
        samples = results.read(out).samples
        assert set(samples.groupby("point").text_id.apply(frozenset)) == {frozenset(samples.text_id)}
        assert set(samples.point) == set(LABELS)
        stopped = f"time limit reached with {texts_there} of 8 texts; the same command resumes" in ended.err
        assert stopped is (texts_there < 8)
    assert results.read_run(out).status == "complete"
    assert len(by_hand) == 8, "no text was decoded twice"


def test_a_budget_that_is_up_before_the_first_text_is_no_failure(
    custom: Sequence[str], by_hand: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Seconds(monkeypatch)
    ended = succeeded(*custom, *GRID, "--out", tmp_path / "out", "--budget", "1s")
    assert "time limit reached with 0 of 8 texts" in ended.err
    assert by_hand == []
    succeeded(*custom, *GRID, "--out", tmp_path / "out")
    assert len(by_hand) == 8


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("--alpha-fb 0.5", 2, "error: --task: '': is missing (allowed: a task's name or file); see bild-bench tasks"),
        ("--task iwslt17 --config none.yaml", 3, "error: --config: 'none.yaml': cannot be read as YAML ("),
        ("--task iwslt17 --mode bidl", 2, "error: --mode: 'bidl': not known"),
        ("--task iwslt17 --mode bild,", 2, "error: --mode: 'bild,': has an empty name in it"),
        ("--task iwslt17 --gamma 3", 2, "error: --gamma: 3: does not apply to --mode bild (allowed with: speculative)"),
        ("--task iwslt17 --alpha-fb 1.5", 2, "error: --alpha-fb: 1.5: must be a number from 0 to 1"),
        ("--task iwslt17 --mode speculative --gamma 2.5", 2, "error: --gamma: '2.5': must be whole numbers"),
        ("--task iwslt17 --budget 0", 2, "error: --budget: '0': must be a duration"),
        ("--task iwslt17 --extend nothing", 3, "error: results: 'nothing': no run.parquet in it"),
        ("--task iwslt17 --draws 2", 2, "error: --draws: 2: greedy search gives the same text each time"),
        ("--task iwslt17 --small a,b --preset flan", 2, "cannot be mixed with --preset or --aligned"),
        ("--task iwslt17 --large x --small a,b --mode calm", 2, "error: --small: 'a,b': does not apply to --mode "),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said_in_one_line(
    arguments: str, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("sweep", *arguments.split())
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
