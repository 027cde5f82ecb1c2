"""A model's table of positions ends before the task's limit: texts end there, and a line says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from tests.checkpoints import save_bart
from tests.command_line import QUICK, call
from tests.made_data import jsonl

LINE = "texts end after 24 tokens: the models have no more positions (the task allows 128)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("positions")
    save_bart(made / "short", max_position_embeddings=24)
    save_bart(made / "shorter", max_position_embeddings=20, seed=1)
    rows = [{"source": "the dog sees a tree", "target": "a"}, {"source": "the cat runs", "target": "a"}]
    jsonl(made / "texts.jsonl", rows)
    return made


def _pair(folder: Path, large: str, small: str) -> tuple[str | Path, ...]:
    return ("--task", "custom", "--data", folder / "texts.jsonl", "--large", folder / large, "--small", folder / small)


def test_a_run_ends_its_texts_there_and_says_so_once(folder: Path, tmp_path: Path) -> None:
    ended = call("run", *_pair(folder, "short", "short"), *QUICK, "--alpha-fb", "0.9", "--out", tmp_path / "out")
    assert ended.code == 0
    assert ended.err.splitlines().count(f"warning: {LINE}") == 1
    assert "could not be timed" not in ended.err
    rows = read_table(tmp_path / "out" / "samples.parquet").to_pylist()
    assert {(row["status"], row["hit_limit"], row["generated"]) for row in rows} == {("ok", True, 24)}
    configuration = json.loads(read_table(tmp_path / "out" / "run.parquet").to_pylist()[0]["configuration"])
    assert configuration["target_limit"] == 24


def test_generate_says_so(folder: Path) -> None:
    models = ("--large", folder / "short", "--small", folder / "short")
    ended = call("generate", "the dog", "--task", "custom", *models)
    assert (ended.code, ended.err.splitlines().count(LINE)) == (0, 1)


def test_a_profile_refuses_what_is_too_short_to_be_timed(folder: Path, tmp_path: Path) -> None:
    ended = call("profile", *_pair(folder, "short", "shorter"), *QUICK[:2], "--out", tmp_path / "profile")
    assert ended.code == 3
    assert ended.last_remark == (
        "error: --large and --small: 20: calls of 16 tokens behind 8 cannot be timed with so few positions; "
        "use models whose position table is longer"
    )
