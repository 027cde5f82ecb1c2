"""An experiment that stopped goes on where it was, and one that is complete stays as it is."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench import directories, results
from bild_bench.errors import RunError, UsageError
from bild_bench.experiment import run_experiment
from bild_bench.parquet import save_table
from bild_bench.setup import Request
from tests.made_data import jsonl
from tests.made_experiments import POINTS, TEXTS, figures_by_hand, request


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "texts.jsonl", TEXTS)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return figures_by_hand(monkeypatch)


def test_a_full_disk_keeps_what_is_finished_and_the_same_command_goes_on(
    texts: Path, tmp_path: Path, orders: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def save_two(path: Path, table: Any) -> None:
        if path.parent.name == "shards" and len(list(path.parent.glob("*.parquet"))) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save_table(path, table)

    monkeypatch.setattr(results, "save_table", save_two)
    with pytest.raises(RunError, match=r"out'?: cannot be written \(No space left on device\); free some space"):
        run_experiment(request(texts, out), POINTS)
    assert len(results.finished_texts(out)) == 2
    monkeypatch.setattr(results, "save_table", save_table)
    said: list[str] = []
    run_experiment(request(texts, out), POINTS, announce=said.append)
    assert said == [f"resuming {out}: 2 of 8 texts are there"]
    samples = results.read(out).samples
    assert list(samples.text_index) == [index for index in range(8) for _ in POINTS]
    first, second = samples.process_id[0], samples.process_id[6]
    assert list(samples.process_id) == [first] * 6 + [second] * 18
    assert first != second


def test_a_summary_that_is_gone_is_written_again_as_it_was(
    texts: Path, tmp_path: Path, orders: list[list[str]]
) -> None:
    out = tmp_path / "out"
    run_experiment(request(texts, out), POINTS)
    summary, run = (out / results.SUMMARY).read_bytes(), (out / results.RUN).read_bytes()
    (out / results.SUMMARY).unlink()
    run_experiment(request(texts, out), POINTS)
    assert (out / results.SUMMARY).read_bytes() == summary
    assert (out / results.RUN).read_bytes() == run
    assert len(orders) == 8


def test_a_complete_experiment_is_shown_and_never_decoded_again(
    texts: Path, tmp_path: Path, orders: list[list[str]]
) -> None:
    out, said = tmp_path / "out", list[str]()
    run_experiment(request(texts, out), POINTS)
    before = {path.name: path.read_bytes() for path in out.glob("*.parquet")}
    orders.clear()
    run_experiment(request(texts, out), POINTS, announce=said.append)
    assert orders == []
    assert said == [f"{out} is complete already: nothing is decoded, its figures follow"]
    assert {path.name: path.read_bytes() for path in out.glob("*.parquet")} == before


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Request:
    """The request of an experiment that is complete."""
    made = request(None, tmp_path_factory.mktemp("finished") / "out", limit=2)
    run_experiment(made, POINTS)
    return made


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"seed": 1}, "seed 0 there, 1 here"),
        ({"dtype": "float64"}, "dtype 'float32' there, 'float64' here"),
        ({"warmup": 1}, "warmup 0 there, 1 here"),
        ({"threads": 2}, "threads 1 there, 2 here"),
        ({"limit": 4}, "texts 2 there, 4 here"),
        ({"prefix": "translate: "}, "prefix None there, 'translate: ' here"),
        ({"metric": "rougeL"}, "metric 'bleu' there, 'rougeL' here"),
        ({}, "points ['vanilla', 'bild fb=0.5 rb=2', 'bild fb=0.9 rb=2'] there, ['vanilla'] here"),
    ],
)
def test_another_experiment_in_the_same_directory_is_refused_and_the_difference_named(
    change: dict[str, Any], difference: str, finished: Request, orders: list[list[str]]
) -> None:
    with pytest.raises(UsageError) as refused:
        run_experiment(replace(finished, **change), POINTS if change else POINTS[:1])
    assert (refused.value.field, refused.value.problem) == ("--out", f"holds another experiment: {difference}")
    assert orders == []


def test_without_a_directory_an_unfinished_run_is_taken_up_and_a_finished_one_left_alone(
    texts: Path, tmp_path: Path, orders: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replace(request(texts, tmp_path), out=None, results=tmp_path / "results")

    def stopped(directory: Path, *_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(results, "write_text", stopped)
        with pytest.raises(KeyboardInterrupt):
            run_experiment(made, POINTS)
    (unfinished,) = made.results.iterdir()
    assert unfinished.name.endswith("-custom-texts.jsonl-embedded-vanilla-bild")
    assert run_experiment(made, POINTS) == unfinished
    another = run_experiment(made, POINTS)
    assert another != unfinished
    assert set(made.results.iterdir()) == {unfinished, another}


def test_a_directory_that_another_process_writes_to_is_refused(
    texts: Path, tmp_path: Path, orders: list[list[str]]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with directories.lock(out), pytest.raises(RunError, match="another process is writing there; wait until it ends"):
        run_experiment(request(texts, out), POINTS)
    assert not (out / results.RUN).exists()
    run_experiment(request(texts, out), POINTS)


@pytest.mark.parametrize("inside", ["", "deeper/out"])
def test_a_file_in_the_directorys_place_is_refused_before_anything_is_loaded(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bild_bench.experiment.prepare", lambda *_: pytest.fail("loaded"))
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot be written \(.*\); choose a directory that you may write to"):
        run_experiment(request(None, tmp_path / "file" / inside), POINTS)
    assert (tmp_path / "file").read_text() == "mine"
