"""What is asked for without measure is counted first and refused at once, in one line."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bild_bench.errors import DataError, UsageError
from bild_bench.printable import shown
from bild_bench.tasks import load_task
from bild_bench.training.recipe import Recipe
from tests.checkpoints import save_t5
from tests.command_line import call
from tests.made_data import jsonl, text

THOUSAND = "1:1000"
IWSLT = ("--task", "iwslt17")


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (
            ("sweep", *IWSLT, "--alpha-fb", "0:1:0.01", "--alpha-rb", THOUSAND, "--max-draft", THOUSAND),
            "error: points: 101000000: too many points from 101 of --alpha-fb x 1,000 of --alpha-rb"
            " x 1,000 of --max-draft (allowed: at most 10,000); widen a step, or try fewer values",
        ),
        (
            ("tune", *IWSLT, "--alpha-fb", "0:1:0.01", "--alpha-rb", "1:100"),
            "error: points: 10100: too many points from 101 of --alpha-fb x 100 of --alpha-rb"
            " (allowed: at most 10,000); widen a step, or try fewer values",
        ),
        (
            ("sweep", *IWSLT, "--alpha-fb", "0:1:0.0001"),
            "error: --alpha-fb: '0:1:0.0001': has more values than 1000; widen the step",
        ),
        (
            ("run", *IWSLT, "--top-p", "0.8", "--draws", "10001"),
            "error: --draws: 10001: must be at most 10,000 for each text; ask for fewer",
        ),
        (
            ("profile", *IWSLT, "--repeats", "1001"),
            "error: --repeats: 1001: must be at most 1,000; leave it out for 3",
        ),
    ],
)
def test_a_count_beyond_all_measure_is_refused(typed: tuple[str, ...], line: str, tmp_path: Path) -> None:
    ended = call(*typed, "--out", tmp_path / "out")
    assert (ended.code, ended.out, ended.err) == (2, "", line + "\n")
    assert not list(tmp_path.iterdir())


def test_a_step_of_too_many_batches_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        Recipe(accumulate=1_000_000_000)
    assert str(refused.value) == (
        "--accumulate: 1000000000: makes 1,000,000,000 batches per step, and at most 2,000,000 are allowed;"
        " ask for fewer"
    )


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("num_layers", 10**9, "num_layers 1,000,000,000 (allowed with these weights: at most 1,000)"),
        ("num_decoder_layers", 1001, "num_decoder_layers 1,001 (allowed with these weights: at most 1,000)"),
        ("d_ff", 10**12, "d_ff 1,000,000,000,000 (allowed with these weights: at most 1,000,000)"),
        ("vocab_size", 10**40, "vocab_size a number of more than 30 digits (allowed with these weights: at most 1,000"),
    ],
)
def test_a_configuration_of_impossible_size_is_refused_before_a_model_is_built(
    field: str, value: int, says: str, t5: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "t5"
    shutil.copytree(t5, folder)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, field: value}))
    ended = call("generate", "the dog", "--task", "custom", "--mode", "vanilla", "--large", folder)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith(f"error: --large: '{folder}': its config.json asks for {says}")
    assert ended.err.endswith("; restore the file\n")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"))


# Nine to the twelfth values, should anybody spell them out.
BOMB = ["&a0 [x, x, x, x, x, x, x, x, x]", *(f"&a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]


@pytest.mark.parametrize("field", ["title", "sources", "sizes", "new"])
def test_a_nest_of_aliases_is_never_spelled_out(field: str, tmp_path: Path) -> None:
    lines = [line for line in Path("tasks/xsum.yaml").read_text().splitlines() if not line.startswith(("  ", field))]
    nested = [f"b{number}: {value}" for number, value in enumerate(BOMB)]
    file = text(tmp_path / "task.yaml", "\n".join([*nested[:-1], f"{field}: {BOMB[-1]}", *lines]))
    with pytest.raises(DataError) as refused:
        load_task(str(file))
    assert str(refused.value).startswith("task.yaml: b0: ['x', 'x'")
    only = text(tmp_path / "only.yaml", "\n".join(["title:", *(f"- {value}" for value in BOMB), *lines]))
    with pytest.raises(DataError) as refused:
        load_task(str(only))
    assert len(str(refused.value)) < 700


def test_values_are_cut_before_they_are_spelled_out() -> None:
    nest: list[Any] = ["x"]
    for _ in range(40):
        nest = [nest, nest]
    assert shown(nest) == "[[[[...], [...]], [[...], [...]]], [[[...], [...]], [[...], [...]]]]"
    assert shown("a" * 10**6) == "'" + "a" * 298 + "…"
    assert shown({"b": 1, "a": None}) == "{'a': None, 'b': 1}"
    assert shown(10**5000) == "a int that is too long to be shown"
    assert shown(list(range(100))).endswith("18, 19, ...]")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("name: x\ntitle: a\nname: y\n", "the key 'name' is given twice (lines 1 and 3); correct the task file"),
        ("a: &a {k: 1}\nb: {<<: *a}\n", "line 2 merges mappings (<<), which is not read; correct the task file"),
        ("a: " + "[" * 5000 + "]" * 5000, "is nested too deeply; correct the task file"),
        ("#" * 1_000_001, "is 1,000,001 bytes long (allowed: 1,000,000); give a file of settings"),
    ],
)
def test_a_task_file_that_nobody_would_write_is_one_line(content: str, line: str, tmp_path: Path) -> None:
    file = text(tmp_path / "task.yaml", content)
    ended = call("run", "--task", file)
    assert (ended.code, ended.out, ended.err) == (3, "", f"error: task file: '{file}': {line}\n")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("task: a\ntask: b\n", "the key 'task' is given twice (lines 1 and 2); correct the file"),
        ("task: " + "[" * 5000 + "]" * 5000, "is nested too deeply; correct the file"),
    ],
)
def test_so_is_an_experiment_file(content: str, line: str, tmp_path: Path) -> None:
    file = text(tmp_path / "grid.yaml", content)
    ended = call("sweep", "--config", file)
    assert (ended.code, ended.out, ended.err) == (3, "", f"error: --config: '{file}': {line}\n")


def test_a_text_that_would_take_all_memory_is_refused_by_its_row(tmp_path: Path) -> None:
    giant = "word " * 2_000_001
    data = jsonl(tmp_path / "texts.jsonl", [{"source": "a", "target": "b"}, {"source": giant, "target": "b"}])
    ended = call("run", "--task", "custom", "--data", data, "--out", tmp_path / "out")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("error: column source: 'word word ")
    assert ended.err.endswith(
        "…: row 1 (counted from 0) has 10,000,005 characters (allowed: 10,000,000);"
        " take the row out, or split its text\n"
    )
    assert len(ended.err) < 500


def test_so_is_a_giant_on_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("word " * 2_000_001))
    ended = call("generate", "-")
    assert (ended.code, ended.out) == (2, "")
    assert ended.last_remark.endswith(
        "has 10,000,005 characters (allowed: 10,000,000); give a shorter one: models read some hundred tokens"
    )
