"""`bild-bench list`: every experiment is a row, whatever state its files are in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bild_bench.cli import console
from bild_bench.past import past_experiments
from tests.command_line import QUICK, call
from tests.made_reports import experiment, grid
from tests.made_results import BASELINE, POINT, failed_sample, made_run, made_sample, stored, two_texts


def rows(root: Path) -> dict[str, dict[str, Any]]:
    """By the folder's name."""
    ended = call("list", root, "--json")
    assert (ended.code, ended.err) == (0, "")
    return {Path(row["directory"]).name: row for row in json.loads(ended.out)}


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "_width", 250)


def test_the_newest_comes_first_with_all_that_was_asked_for(tmp_path: Path, wide: None) -> None:
    experiment(tmp_path / "old", created_at="2026-11-28T23:59:00+02:00")
    grid(tmp_path / "deep/new", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)], created_at="2026-11-30T08:00:00Z", task="wmt14")
    run = made_run(created_at="2026-11-29T12:00:00Z", texts=3, texts_expected=["a", "b", "c"])
    stored(tmp_path / "half", run)
    lines = call("list", tmp_path).out.splitlines()
    bild = "embedded/iwslt17 embedded bild fb=0.5 rb=2"
    assert [line.split() for line in lines[3:6]] == [
        f"2026-11-30 08:00 embedded/iwslt17 embedded 3 2 complete {tmp_path}/deep/new".split(),
        f"2026-11-29 12:00 {bild} 3 unfinished: 2 of 3 texts {tmp_path}/half".split(),
        f"2026-11-28 21:59 {bild} 2 complete {tmp_path}/old".split(),
    ]
    for heading in ("started (UTC)", "task", "pair", "points", "texts", "status", "directory"):
        assert heading in lines[1]
    assert json.loads(call("list", tmp_path, "--json").out)[0] == {
        "directory": str(tmp_path / "deep/new"),
        "status": "complete",
        "started": "2026-11-30T08:00:00+00:00",
        "task": "wmt14",
        "data": "embedded/iwslt17",
        "split": "test",
        "pair": "embedded",
        "points": ["vanilla", "bild fb=0.5 rb=1", "bild fb=0.5 rb=2"],
        "texts": 2,
        "finished": 2,
        "failed": 0,
        "reason": None,
    }


def test_a_narrow_terminal_gets_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "_width", 40)
    experiment(tmp_path / "x")
    assert f"  directory: {tmp_path}/x\n" in call("list", tmp_path).out


def test_what_a_file_says_is_text_and_never_a_terminals_command(tmp_path: Path, wide: None) -> None:
    experiment(tmp_path / "x", pair_label="a\n\x1b[2Jb", data_label="[red]")
    told = call("list", tmp_path).out
    assert "\x1b" not in told
    (line,) = (line for line in told.splitlines() if "[red]" in line)
    assert line.rstrip().endswith(f"{tmp_path}/x")


def test_rows_that_failed_are_counted(tmp_path: Path) -> None:
    texts = two_texts() | {"a": [made_sample(BASELINE), failed_sample(POINT)]}
    experiment(tmp_path / "x", texts)
    assert past_experiments([tmp_path])[0].told == "complete, 1 rows failed"


DAMAGE: dict[str, tuple[Any, str]] = {
    "cut run": (lambda d: (d / "run.parquet").write_bytes(b"PAR1"), "run.parquet: damaged, or cannot be read"),
    "lost run": (lambda d: (d / "run.parquet").unlink(), "no run.parquet in it"),
    "lost samples": (lambda d: (d / "samples.parquet").unlink(), "samples.parquet is missing"),
    "cut samples": (
        lambda d: (d / "samples.parquet").write_bytes((d / "samples.parquet").read_bytes()[:-9]),
        "samples.parquet: damaged, or cannot be read",
    ),
    "other samples": (
        lambda d: (d / "samples.parquet").write_bytes((d.parent / "other/samples.parquet").read_bytes()),
        "samples.parquet does not fit run.parquet: experiment_id 'e2' is not the run's",
    ),
    "cut summary": (lambda d: (d / "summary.parquet").write_bytes(b""), "summary.parquet: damaged, or cannot be read"),
    "other file": (
        lambda d: (d / "run.parquet").write_bytes((d / "samples.parquet").read_bytes()),
        "run.parquet: not a results file of bild-bench",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_experiment_is_a_row_with_its_reason_and_the_others_follow(name: str, tmp_path: Path) -> None:
    damage, reason = DAMAGE[name]
    samples = {text: [made_sample(BASELINE, experiment_id="e2")] for text in ("a",)}
    experiment(tmp_path / "other", samples, experiment_id="e2", points=[BASELINE])
    damage(experiment(tmp_path / "bad"))
    found = rows(tmp_path)
    assert (found["bad"]["status"], found["other"]["status"]) == ("damaged", "complete")
    assert found["bad"]["reason"].startswith(reason)
    # What is still known is told.
    assert found["bad"]["task"] == (None if "run" in name or name == "other file" else "iwslt17")
    assert f"damaged: {reason}" in " ".join(call("list", tmp_path).out.split())


def test_a_cut_shard_and_shards_without_a_run_are_damaged(tmp_path: Path) -> None:
    stored(tmp_path / "cut")
    shard = next((tmp_path / "cut/shards").iterdir())
    shard.write_bytes(shard.read_bytes()[:100])
    stored(tmp_path / "lost")
    (tmp_path / "lost/run.parquet").unlink()
    found = rows(tmp_path)
    assert found["cut"]["reason"].startswith(f"{shard.name}: damaged, or cannot be read")
    assert found["lost"]["reason"] == "no run.parquet in it"


def test_a_folder_that_may_not_be_read_is_a_row(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    experiment(tmp_path / "good")
    closed = experiment(tmp_path / "closed")
    closed.chmod(0)
    try:
        found = rows(tmp_path)
    finally:
        closed.chmod(0o700)
    assert found["closed"]["reason"] == "cannot be read (Permission denied)"
    assert found["good"]["status"] == "complete"


def test_what_only_report_would_stumble_over_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment(tmp_path / "x")
    monkeypatch.setattr("bild_bench.past._described", lambda *_: {}["points"])
    assert rows(tmp_path)["x"]["reason"] == "KeyError: 'points'"


def test_nothing_there_yet_is_no_error_and_a_wrong_path_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("list")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "no experiments below results; run one first: bild-bench run --task iwslt17\n"
    assert json.loads(call("list", "--json").out) == []
    wrong = call("list", "nowhere")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("error: RESULTS: 'nowhere': is not a directory")


def test_an_experiment_named_twice_is_listed_once(tmp_path: Path) -> None:
    experiment(tmp_path / "a/x")
    assert len(past_experiments([tmp_path, tmp_path / "a", tmp_path / "a/x"])) == 1


def test_a_run_is_listed_and_no_torch_is_loaded_for_it(tmp_path: Path) -> None:
    ended = call("run", "--task", "iwslt17", "--limit", "2", *QUICK, "--out", tmp_path / "results/out")
    assert ended.code == 0
    program = (
        "import sys, atexit; from bild_bench.cli.main import main; sys.argv = ['bild-bench', 'list']\n"
        "atexit.register(lambda: print({'torch', 'transformers', 'datasets'} & set(sys.modules), file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "embedded/iwslt17" in done.stdout
    assert done.stderr == "set()\n"
