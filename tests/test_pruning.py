"""Points beyond reach of the front are dropped while an experiment runs, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.decoding.picking import Sampling
from bild_bench.decoding.records import Counters, Decoded
from bild_bench.experiment import run_experiment
from bild_bench.measure.timing import Outcome
from bild_bench.plan import make_point, with_baseline
from bild_bench.pruning import Pruner
from bild_bench.schema import SampleRecord
from tests.made_data import jsonl
from tests.made_experiments import request
from tests.made_results import BASELINE, POINT, made_run, made_sample

OTHER = POINT | {"point_id": "2" * 16, "point": "bild fb=0.9 rb=2"}
THIRD = POINT | {"point_id": "3" * 16, "point": "bild fb=0.1 rb=2"}
GOOD, BAD = "the cat sat", "a dog ran"


def sample(point: dict[str, Any], number: int, seconds: float, output: str = GOOD, **more: Any) -> SampleRecord:
    figures = {"decode_seconds": seconds, "output_text": output, "text_id": f"t{number}", "text_index": number}
    return made_sample(point, **(figures | more))


def pruner_after(texts: int, rows: Any, points: tuple[dict[str, Any], ...] = (POINT, OTHER)) -> Pruner:
    """After so many texts, each with the rows that `rows(number)` makes."""
    pruner = Pruner(made_run(points=[BASELINE, *points]))
    for number in range(texts):
        pruner.add(rows(number))
    return pruner


def ids(*points: dict[str, Any]) -> list[str]:
    return [point["point_id"] for point in points]


def slower_and_worse(number: int) -> list[SampleRecord]:
    """OTHER takes twice POINT's time and is wrong each time; times vary from text to text."""
    time = 1 + number % 5
    return [sample(BASELINE, number, 99, BAD), sample(POINT, number, time), sample(OTHER, number, 2 * time, BAD)]


def test_a_clearly_beaten_point_goes_and_it_is_said_by_whom() -> None:
    found = pruner_after(16, slower_and_worse).beaten(ids(POINT, OTHER))
    assert {point: (beaten.by, beaten.texts) for point, beaten in found.items()} == {
        OTHER["point_id"]: (POINT["point"], 16)
    }


@pytest.mark.parametrize(
    ("seconds", "outputs"),
    [
        pytest.param((1, 2), (GOOD, GOOD), id="slower alone"),
        pytest.param((1, 1), (GOOD, BAD), id="worse alone"),
        pytest.param((2, 1), (GOOD, BAD), id="faster and worse"),
        pytest.param((1, 1), (GOOD, GOOD), id="equal"),
        pytest.param((1, 2), (BAD, GOOD), id="slower and better"),
    ],
)
def test_a_point_that_is_not_beaten_in_both_stays(seconds: tuple[float, float], outputs: tuple[str, str]) -> None:
    def rows(number: int) -> list[SampleRecord]:
        return [sample(POINT, number, seconds[0], outputs[0]), sample(OTHER, number, seconds[1], outputs[1])]

    assert pruner_after(64, rows).beaten(ids(POINT, OTHER)) == {}


@pytest.mark.parametrize("by_chance", ["time", "quality"])
def test_a_difference_that_chance_explains_drops_nothing(by_chance: str) -> None:
    def rows(number: int) -> list[SampleRecord]:
        # In one figure OTHER is worse in each text, in the other one in nine texts of sixteen.
        better = number % 16 < 7
        slower, worse = (not better, True) if by_chance == "time" else (True, not better)
        first = sample(POINT, number, 1 if slower else 2, GOOD if worse else BAD)
        return [first, sample(OTHER, number, 2 if slower else 1, BAD if worse else GOOD)]

    assert pruner_after(16, rows).beaten(ids(POINT, OTHER)) == {}


def test_the_baseline_is_never_dropped_and_drops_nothing() -> None:
    def beaten_baseline(number: int) -> list[SampleRecord]:
        return [sample(BASELINE, number, 9, BAD), sample(POINT, number, 1)]

    def strong_baseline(number: int) -> list[SampleRecord]:
        return [sample(BASELINE, number, 1), sample(POINT, number, 9, BAD)]

    for rows in (beaten_baseline, strong_baseline):
        assert pruner_after(24, rows).beaten(ids(BASELINE, POINT, OTHER)) == {}


def test_looks_are_taken_after_16_texts_and_then_after_every_8() -> None:
    looks = [number for number in range(1, 50) if pruner_after(number, slower_and_worse).beaten(ids(POINT, OTHER))]
    assert looks == [16, 24, 32, 40, 48]


def test_only_points_that_are_still_running_are_judged_and_judge() -> None:
    def rows(number: int) -> list[SampleRecord]:
        return [*slower_and_worse(number), sample(THIRD, number, 1.5 * (1 + number % 5), BAD)]

    pruner = pruner_after(16, rows, (POINT, OTHER, THIRD))
    assert set(pruner.beaten(ids(POINT, OTHER, THIRD))) == set(ids(OTHER, THIRD))
    assert set(pruner.beaten(ids(POINT, THIRD))) == set(ids(THIRD))
    assert pruner.beaten(ids(OTHER, THIRD)) == {}, "equally bad, and what beats both has gone"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"process_id": "p2"}, id="another process"),
        pytest.param({"draw": 1}, id="another draw"),
        pytest.param({"text_id": "elsewhere"}, id="another text"),
    ],
)
def test_only_rows_of_the_same_text_draw_and_process_are_compared(changed: dict[str, Any]) -> None:
    def rows(number: int) -> list[SampleRecord]:
        # One text in sixteen differs: of 16 texts too few are left, of 24 enough.
        return [sample(POINT, number, 1), sample(OTHER, number, 2, BAD, **(changed if number % 16 == 3 else {}))]

    assert pruner_after(16, rows).beaten(ids(POINT, OTHER)) == {}
    assert set(pruner_after(24, rows).beaten(ids(POINT, OTHER))) == set(ids(OTHER))


def test_draws_of_a_text_are_no_further_texts() -> None:
    pruner = Pruner(made_run(points=[BASELINE, POINT, OTHER]))
    for number in range(16):
        draws = [(number % 4, draw) for draw in range(4)]
        pruner.add([s for text, draw in draws for s in (sample(POINT, text, 1, draw=draw),)])
        pruner.add([s for text, draw in draws for s in (sample(OTHER, text, 2, BAD, draw=draw),)])
    assert pruner.beaten(ids(POINT, OTHER)) == {}, "four texts, however often they were drawn"


# An experiment: points by made figures, 24 texts.
POINTS = with_baseline([make_point("bild", {}), make_point("bild", {"alpha_fb": 0.9}), make_point("small", {})])
SECONDS = {"vanilla": 8.0, "bild fb=0.5 rb=2": 1.0, "bild fb=0.9 rb=2": 4.0, "small": 0.5}
TEXTS = [{"source": f"Satz {number}.", "target": f"the sentence number {number}"} for number in range(24)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Which points each text was decoded by. bild fb=0.9 is slow and empty, small is fast and empty."""
    seen: list[list[str]] = []

    def time_text(pair: Any, source: Any, points: Any, *limits: Any) -> list[Outcome]:
        seen.append(sorted(point.label for point in points))
        good = tuple(pair.tokenizer("the sentence number").input_ids)
        outcomes = []
        for place, point in enumerate(points):
            tokens = good if point.label in ("vanilla", "bild fb=0.5 rb=2") else (good[-1],)
            result = Decoded(tokens, Counters(generated=len(tokens)), False, ())
            outcomes.append(Outcome(point, place, result, 0.1, SECONDS[point.label]))
        return outcomes

    monkeypatch.setattr("bild_bench.passes.time_text", time_text)
    monkeypatch.setattr("bild_bench.watch.calibrate", lambda *_: {"made": "up"})
    return seen


def test_an_experiment_goes_on_without_the_points_that_it_dropped_and_records_them(
    decoded: list[list[str]], tmp_path: Path
) -> None:
    texts, said = jsonl(tmp_path / "texts.jsonl", TEXTS), list[str]()
    out = run_experiment(request(texts, tmp_path / "out", prune=True, metric="rougeL"), POINTS, announce=said.append)
    everything = sorted(SECONDS)
    assert decoded[:16] == [everything] * 16
    assert decoded[16:] == [[label for label in everything if label != "bild fb=0.9 rb=2"]] * 8
    assert said == ["dropped 1 points that cannot reach the front; 3 go on"]
    run = results.read(out).run
    assert run.status == "complete"
    assert [point.get("pruned") for point in run.points] == [
        None,
        None,
        {"by": "bild fb=0.5 rb=2", "texts": 16},
        None,
    ]
    samples: Any = results.read(out).samples
    assert samples.groupby("point").size().to_dict() == dict.fromkeys(everything, 24) | {"bild fb=0.9 rb=2": 16}


def test_what_was_dropped_stays_dropped_after_a_stop_and_nothing_is_dropped_unasked(
    decoded: list[list[str]], tmp_path: Path
) -> None:
    def stop(run: Any, samples: Any) -> None:
        if any("pruned" in point for point in run.points):
            raise KeyboardInterrupt

    asked = request(jsonl(tmp_path / "texts.jsonl", TEXTS), tmp_path / "out", prune=True, metric="rougeL")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(asked, POINTS, observe=stop)
    assert len(decoded) == 16
    run_experiment(asked, POINTS)
    assert all("bild fb=0.9 rb=2" not in labels for labels in decoded[16:])
    assert len(decoded) == 24
    decoded.clear()
    run_experiment(request(asked.data and Path(asked.data), tmp_path / "all", metric="rougeL"), POINTS)
    assert decoded == [sorted(SECONDS)] * 24


def test_draws_go_on_without_the_dropped_points_too(decoded: list[list[str]], tmp_path: Path) -> None:
    texts = jsonl(tmp_path / "texts.jsonl", TEXTS[:18])
    asked = request(texts, tmp_path / "out", prune=True, metric="rougeL", sampling=Sampling(temperature=1.1), draws=2)
    run_experiment(asked, POINTS)
    assert [len(labels) for labels in decoded] == [4] * 32 + [3] * 4
