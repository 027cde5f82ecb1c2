"""An experiment from texts to rows: each text once by every point, in an order of its own, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bild_bench import results
from bild_bench.data import Example
from bild_bench.decoding.methods import METHODS, Method
from bild_bench.decoding.records import Counters, Decoded
from bild_bench.errors import DataError, RunError
from bild_bench.experiment import run_experiment
from bild_bench.plan import Point, with_baseline
from tests.made_data import jsonl
from tests.made_experiments import POINTS, TEXTS, figures_by_hand, request


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "texts.jsonl", TEXTS)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return figures_by_hand(monkeypatch)


def rows(directory: Path) -> Any:
    return results.read(directory).samples


def test_every_text_is_there_once_by_every_point_with_what_was_measured(tmp_path: Path) -> None:
    directory = run_experiment(request(None, tmp_path / "out", warmup=1), POINTS)
    experiment = results.read(directory)
    run = experiment.run
    samples: Any = experiment.samples
    assert (directory, run.status, run.texts, len(samples)) == (tmp_path / "out", "complete", 3, 9)
    assert set(zip(samples.text_id, samples.point, strict=True)) == {
        (text, point.label) for text in run.texts_expected for point in POINTS
    }
    assert list(samples.point[:3]) == [point.label for point in POINTS]
    assert list(samples.role[:3]) == ["baseline", "point", "point"]
    assert set(samples.status) == {"ok"}
    assert (samples.generated == samples.output_ids.map(len)).all()
    assert (samples.generated == samples.drafted - samples.discarded + samples.large_tokens).all()
    assert (samples.total_seconds == samples.encode_seconds + samples.decode_seconds).all()
    assert (samples.encode_seconds > 0).all()
    assert (samples.decode_seconds > 0).all()
    assert samples.process_id.nunique() == samples.machine.nunique() == 1
    for row in samples.itertuples():
        assert [step["token"] for step in row.trace if step["kept"]] == list(row.output_ids)
    assert set(run.calibration["large"]["rows"]) == {"1", "2", "4", "8", "16"}
    assert set(run.calibration["small"]["rows"]) == {"1"}
    assert run.environment["threads"] == 1
    assert "busy" in run.environment_after
    assert len(run.data["fingerprint"]) == 64
    assert run.models["large"]["fingerprint"] != run.models["small"]["fingerprint"]


def test_figures_go_into_the_row_of_their_point(texts: Path, tmp_path: Path, orders: list[list[str]]) -> None:
    samples = rows(run_experiment(request(texts, tmp_path / "out"), POINTS))
    for row in samples.itertuples():
        assert row.point == orders[row.text_index][row.order]
        assert (row.encode_seconds, row.decode_seconds, row.total_seconds) == (0.5, 0.25 + row.order, 0.75 + row.order)
        assert (row.generated, row.drafted, row.discarded, row.large_tokens) == (2, 3, 1, 0)
        assert (row.source, list(row.references)) == (f"Satz {row.text_index}.", [f"Sentence {row.text_index}."])
    # What no method counted stays unknown.
    assert samples.fallbacks.isna().all()


def test_the_order_is_drawn_from_seed_and_text_alone(texts: Path, tmp_path: Path, orders: list[list[str]]) -> None:
    run_experiment(request(texts, tmp_path / "all"), POINTS)
    everything = orders.copy()
    assert len({tuple(order) for order in everything}) > 2
    assert all(sorted(order) == sorted(point.label for point in POINTS) for order in everything)
    orders.clear()
    run_experiment(request(jsonl(tmp_path / "three.jsonl", TEXTS[5:2:-1]), tmp_path / "three", warmup=0), POINTS)
    assert orders == everything[5:2:-1]
    orders.clear()
    run_experiment(request(texts, tmp_path / "seed", seed=1), POINTS)
    assert orders != everything


def test_warm_up_texts_are_decoded_and_dropped(texts: Path, tmp_path: Path, orders: list[list[str]]) -> None:
    samples = rows(run_experiment(request(texts, tmp_path / "out", warmup=2), POINTS))
    assert len(orders) == 2 + 8
    assert len(samples) == 8 * 3


def test_progress_tells_how_many_texts_there_are_and_a_long_start_is_announced(
    texts: Path, tmp_path: Path, orders: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, said = [], list[str]()

    def track(todo: Iterable[Example], done: int, total: int) -> Iterable[Example]:
        seen.append((len(list(todo)), done, total))
        return todo

    run_experiment(request(texts, tmp_path / "short", warmup=1), POINTS, announce=said.append, track=track)
    assert (seen, said) == ([(8, 0, 8)], [])
    seconds = iter([0.0, 30.0])  # the warm-up text takes half a minute: eight texts take four
    clock = SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr("bild_bench.passes.time", clock)
    run_experiment(request(texts, tmp_path / "long", warmup=1), POINTS, announce=said.append)
    assert said == ["about 4 min for 8 texts, estimated from the last warm-up text"]


def test_an_empty_source_is_an_error_row_without_figures(tmp_path: Path) -> None:
    texts = jsonl(tmp_path / "texts.jsonl", [{"source": text, "target": "x"} for text in ("Hallo.", " \n", "Ja.")])
    samples = rows(run_experiment(request(texts, tmp_path / "out"), POINTS))
    failed = samples[samples.status == "error"]
    assert list(failed.text_index) == [1, 1, 1]
    assert set(failed.error) == {"the source text is empty"}
    figures = ["output_ids", "output_text", *Counters.names(), "encode_seconds", "decode_seconds", "total_seconds"]
    assert failed[figures].isna().all(axis=None)
    assert samples[samples.status == "ok"][figures].notna().all(axis=None)
    assert len(samples) == 9


def fragile(calls_that_fail: set[int]) -> Point:
    """The small model alone, whose n-th text fails."""
    count, method = iter(range(1000)), METHODS["small"]

    def decode(*arguments: Any) -> Decoded:
        if next(count) in calls_that_fail:
            raise ZeroDivisionError("made to fail")
        return method.decode(*arguments)

    return Point(Method("fragile", method.uses, method.settings, decode), method.settings())


def test_a_method_that_fails_on_one_text_leaves_an_error_row_and_the_run_goes_on(tmp_path: Path) -> None:
    samples = rows(run_experiment(request(None, tmp_path / "out"), with_baseline([fragile({1})])))
    failed = samples[samples.status == "error"]
    assert list(failed.point) == ["fragile"]
    assert list(failed.error) == ["ZeroDivisionError: made to fail"]
    assert failed[["total_seconds", "decode_seconds", "encode_seconds", "generated"]].isna().all(axis=None)
    assert len(samples) == 6


def test_when_no_text_could_be_decoded_the_run_has_failed_and_its_rows_are_kept(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^texts: 3: not one of them could be decoded; see the errors in .*out/samples"):
        run_experiment(request(None, tmp_path / "out"), [fragile({0, 1, 2})])
    assert set(rows(tmp_path / "out").error) == {"ZeroDivisionError: made to fail"}
    # The same again must not look like a success.
    with pytest.raises(RunError, match="not one of them"):
        run_experiment(request(None, tmp_path / "out"), [fragile(set())])


def test_what_the_texts_lack_is_recorded(tmp_path: Path, orders: list[list[str]]) -> None:
    texts = jsonl(tmp_path / "texts.jsonl", [{"source": "Ja.", "target": target} for target in ("", " ", "Yes.")])
    found = results.read(run_experiment(request(texts, tmp_path / "out"), POINTS)).run.data
    assert (found["total"], found["expected"], found["empty_references"]) == (3, None, 2)
    assert (found["source_column"], found["target_column"]) == ("source", "target")


def test_sources_that_are_all_empty_are_refused(tmp_path: Path) -> None:
    texts = jsonl(tmp_path / "texts.jsonl", [{"source": "", "target": "x"}] * 2)
    with pytest.raises(DataError, match=r"^--data: 'custom/texts.jsonl': every source text is empty; check"):
        run_experiment(request(texts, tmp_path / "out"), POINTS)
