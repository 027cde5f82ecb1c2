"""More texts or more points for an experiment that is there: what may be kept is kept, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.decoding.picking import Sampling
from bild_bench.errors import DataError
from bild_bench.experiment import run_experiment
from bild_bench.measure.timing import Outcome
from bild_bench.plan import Point, make_point, with_baseline
from bild_bench.report.summary import summarise
from tests.made_data import jsonl
from tests.made_experiments import TEXTS, figures_by_hand, request

ONE = with_baseline([make_point("bild", {})])
TWO = with_baseline([make_point("bild", {}), make_point("small", {})])
KEPT_AS_IT_WAS = {"experiment_id"}


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return figures_by_hand(monkeypatch)


def texts(tmp_path: Path, number: int) -> Path:
    # One name, so that the texts of a larger file are the same data.
    return jsonl(tmp_path / str(number) / "texts.jsonl", TEXTS[:number])


def rows(directory: Path) -> list[dict[str, Any]]:
    """Plain values, in the recorded order."""
    frame: Any = results.read(directory).samples
    return [{name: _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> str:
    return str(value.tolist() if hasattr(value, "tolist") else value)


def without(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in KEPT_AS_IT_WAS}


def points_by_process(directory: Path) -> list[Counter[str]]:
    """How many rows of each point a process made, the earlier process first."""
    counts: dict[str, Counter[str]] = {}
    for row in rows(directory):
        counts.setdefault(row["process_id"], Counter())[row["point"]] += 1
    return list(counts.values())


def test_more_texts_are_decoded_and_the_others_are_taken_over_unchanged(
    orders: list[list[str]], tmp_path: Path
) -> None:
    first = run_experiment(request(texts(tmp_path, 3), tmp_path / "a"), TWO)
    orders.clear()
    second = run_experiment(request(texts(tmp_path, 5), tmp_path / "b", extend=first), TWO)
    assert [len(order) for order in orders] == [3, 3]
    assert [without(row) for row in rows(second)[:9]] == [without(row) for row in rows(first)]
    assert {row["experiment_id"] for row in rows(second)} == {results.read(second).run.experiment_id}
    assert len(rows(second)) == 15
    assert results.read(second).run.status == "complete"


def test_more_points_are_decoded_beside_a_baseline_of_their_own(orders: list[list[str]], tmp_path: Path) -> None:
    file = texts(tmp_path, 4)
    first = run_experiment(request(file, tmp_path / "a"), ONE)
    orders.clear()
    second = run_experiment(request(file, tmp_path / "b", extend=first), TWO)
    assert [sorted(order) for order in orders] == [["small", "vanilla"]] * 4
    assert points_by_process(second) == [
        Counter({"vanilla": 4, "bild fb=0.5 rb=2": 4}),
        Counter({"vanilla": 4, "small": 4}),
    ]
    old = [without(row) for row in rows(first)]
    assert [without(row) for row in rows(second) if row["process_id"] == rows(first)[0]["process_id"]] == old


def test_where_nothing_is_new_nothing_is_decoded(orders: list[list[str]], tmp_path: Path) -> None:
    file = texts(tmp_path, 3)
    first = run_experiment(request(file, tmp_path / "a"), TWO)
    orders.clear()
    # Fewer points and fewer texts are a part of what is there.
    second = run_experiment(request(texts(tmp_path, 2), tmp_path / "b", extend=first), ONE)
    assert orders == []
    assert points_by_process(second) == [Counter({"vanilla": 2, "bild fb=0.5 rb=2": 2})]


def test_an_unfinished_experiment_and_one_that_was_extended_can_be_extended(
    orders: list[list[str]], tmp_path: Path
) -> None:
    file = texts(tmp_path, 4)

    def stop(run: Any, samples: Any) -> None:
        if len(orders) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(request(file, tmp_path / "a"), ONE, observe=stop)
    second = run_experiment(request(file, tmp_path / "b", extend=tmp_path / "a"), TWO)
    assert [len(order) for order in orders] == [2, 2, 2, 2, 2, 2, 3]
    orders.clear()
    third = run_experiment(
        request(file, tmp_path / "c", extend=second), with_baseline([*TWO[1:], make_point("bild", {"alpha_fb": 0.9})])
    )
    assert [sorted(order) for order in orders] == [["bild fb=0.9 rb=2", "vanilla"]] * 4
    # On the last text the second process had decoded all three.
    assert Counter(row["point"] for row in rows(third)) == {
        "vanilla": 3 * 2 + 1 + 4,
        "bild fb=0.5 rb=2": 4,
        "small": 4,
        "bild fb=0.9 rb=2": 4,
    }


def test_pairs_are_made_within_a_process_and_a_baseline_that_was_decoded_twice_counts_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    by_hand(monkeypatch, {"vanilla": 8.0, "bild fb=0.5 rb=2": 2.0})
    file = texts(tmp_path, 4)
    first = run_experiment(request(file, tmp_path / "a"), ONE)
    # The machine is twice as slow when it is extended: the paired figures must not see it.
    by_hand(monkeypatch, {"vanilla": 16.0, "small": 2.0})
    second = run_experiment(request(file, tmp_path / "b", extend=first), TWO)
    points = {point.point: point for point in summarise(results.read(second)).points}
    speedups = {name: point.speedup_decoding and point.speedup_decoding.value for name, point in points.items()}
    assert speedups == {"vanilla": 1.0, "bild fb=0.5 rb=2": 4.0, "small": 8.0}
    assert {name: (point.texts, point.paired_texts) for name, point in points.items()} == dict.fromkeys(points, (4, 4))
    assert points["vanilla"].decode_seconds == 4 * 8.0
    assert points["vanilla"].identical_pct == 100.0


def by_hand(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float]) -> None:
    """As `figures_by_hand`, with decoding seconds by label; a label without any fails."""
    figures_by_hand(monkeypatch)
    from bild_bench import passes

    made = passes.time_text

    def time_text(pair: Any, source: Any, points: list[Point], *limits: Any) -> list[Outcome]:
        return [
            Outcome(one.point, one.order, one.decoded, 0.0, seconds[one.point.label])
            if one.point.label in seconds
            else Outcome(one.point, one.order, error="RuntimeError: out of memory")
            for one in made(pair, source, points, *limits)
        ]

    monkeypatch.setattr("bild_bench.passes.time_text", time_text)


def test_what_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = texts(tmp_path, 3)
    by_hand(monkeypatch, {"vanilla": 8.0, "bild fb=0.5 rb=2": 2.0})
    first = run_experiment(request(file, tmp_path / "a"), TWO)
    assert sorted(row["point"] for row in rows(first) if row["status"] == "error") == ["small"] * 3
    orders = figures_by_hand(monkeypatch)
    second = run_experiment(request(file, tmp_path / "b", extend=first), TWO)
    assert [sorted(order) for order in orders] == [["small", "vanilla"]] * 3
    assert {row["status"] for row in rows(second)} == {"ok"}
    assert Counter(row["point"] for row in rows(second)) == {"vanilla": 6, "bild fb=0.5 rb=2": 3, "small": 3}


@pytest.mark.parametrize(
    ("what", "patched"),
    [
        ("machine", "bild_bench.recording.machine_fingerprint"),
        ("code", "bild_bench.plan.code_version"),
    ],
)
def test_of_another_machine_or_other_code_nothing_is_kept(
    what: str, patched: str, orders: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = texts(tmp_path, 2)
    first = run_experiment(request(file, tmp_path / "a"), ONE)
    orders.clear()
    monkeypatch.setattr(patched, lambda *_: f"another {what}")
    second = run_experiment(request(file, tmp_path / "b", extend=first), TWO)
    assert [len(order) for order in orders] == [3, 3]
    assert {row["process_id"] for row in rows(second)}.isdisjoint(row["process_id"] for row in rows(first))


@pytest.mark.parametrize("other", [{"dtype": "float64"}, {"prefix": "x "}, {"session": "reference"}])
def test_of_other_settings_nothing_is_kept(other: dict[str, Any], orders: list[list[str]], tmp_path: Path) -> None:
    file = texts(tmp_path, 2)
    first = run_experiment(request(file, tmp_path / "a"), ONE)
    orders.clear()
    run_experiment(request(file, tmp_path / "b", extend=first, **other), ONE)
    assert [len(order) for order in orders] == [2, 2]


def test_more_draws_are_added_to_those_that_are_there(orders: list[list[str]], tmp_path: Path) -> None:
    file, how = texts(tmp_path, 2), Sampling(top_p=0.9)
    first = run_experiment(request(file, tmp_path / "a", sampling=how, draws=1), ONE)
    orders.clear()
    second = run_experiment(request(file, tmp_path / "b", sampling=how, draws=3, extend=first), ONE)
    assert [len(order) for order in orders] == [2] * 4
    assert Counter(row["draw"] for row in rows(second)) == {"0": 4, "1": 4, "2": 4}
    fewer = run_experiment(request(file, tmp_path / "c", sampling=how, draws=2, extend=second), ONE)
    assert len(orders) == 4
    assert Counter(row["draw"] for row in rows(fewer)) == {"0": 4, "1": 4}


def test_real_rows_are_taken_over_with_all_that_they_hold(tmp_path: Path) -> None:
    points = with_baseline([make_point("bild", {}), make_point("calm", {"threshold": 0.5})])
    first = run_experiment(request(None, tmp_path / "a", limit=2), points)
    second = run_experiment(request(None, tmp_path / "b", limit=2, extend=first), points)
    assert [without(row) for row in rows(second)] == [without(row) for row in rows(first)]
    assert {row["trace"][:2] for row in rows(second)} == {"[{"}
    assert results.read(second).run.status == "complete"


def test_a_directory_without_an_experiment_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    asked = request(texts(tmp_path, 2), tmp_path / "out", extend=tmp_path / "nothing")
    with pytest.raises(DataError, match=r"nothing': no run\.parquet in it; give a directory that bild-bench wrote"):
        run_experiment(asked, ONE)
    assert not (tmp_path / "out").exists()
