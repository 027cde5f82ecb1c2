"""Task files: what comes with the package, what a user may write, and which mistakes are named."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from bild_bench import tasks
from bild_bench.errors import DataError, UsageError
from bild_bench.tasks import Task, load_task, task_names

GOOD: dict[str, Any] = {
    "name": "mine",
    "title": "My texts",
    "kind": "translation",
    "hub_id": "someone/something",
    "revision": "main",
    "config": None,
    "files": "data/{split}-*.parquet",
    "splits": {"test": "test", "dev": "validation"},
    "split": "test",
    "source_column": "translation.de",
    "target_column": "translation.en",
    "source_limit": 100,
    "target_limit": 50,
    "metric": "bleu",
    "embedded": None,
    "licence_note": "mine",
    "sizes": {"test": 3},
    "sources": {"metric": "my choice"},
}


def task_file(folder: Path, **changes: object) -> str:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **changes}, sort_keys=False), encoding="utf-8")
    return str(path)


def test_the_five_tasks_are_there() -> None:
    assert task_names() == ["cnn_dm", "custom", "iwslt17", "wmt14", "xsum"]


@pytest.mark.parametrize("name", ["cnn_dm", "custom", "iwslt17", "wmt14", "xsum"])
def test_every_task_of_the_package_is_valid_and_carries_its_file_name(name: str) -> None:
    assert load_task(name).name == name


@pytest.mark.parametrize(
    ("name", "split", "rows"),
    [("iwslt17", "test", 8079), ("wmt14", "test", 3003), ("xsum", "test", 11334), ("cnn_dm", "test", 11490)],
)
def test_sizes_are_those_of_the_published_sets(name: str, split: str, rows: int) -> None:
    assert load_task(name).sizes[split] == rows


@pytest.mark.parametrize(
    ("name", "metric", "columns"),
    [
        ("iwslt17", "bleu", ("translation.de", "translation.en")),
        ("wmt14", "bleu", ("translation.de", "translation.en")),
        ("xsum", "rougeL", ("document", "summary")),
        ("custom", "bleu", ("source", "target")),
    ],
)
def test_columns_and_metrics(name: str, metric: str, columns: tuple[str, str]) -> None:
    task = load_task(name)
    assert (task.metric, (task.source_column, task.target_column)) == (metric, columns)


def test_an_unknown_task_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"--task: 'iwslt': .*cnn_dm, custom, iwslt17.*did you mean 'iwslt17'"):
        load_task("iwslt")


def test_a_users_task_file_is_read(tmp_path: Path) -> None:
    task = load_task(task_file(tmp_path))
    assert {field.name: getattr(task, field.name) for field in fields(Task)} == GOOD


def test_a_task_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such task file"):
        load_task(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("field", list(GOOD))
def test_every_missing_field_is_named(tmp_path: Path, field: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({name: value for name, value in GOOD.items() if name != field}), encoding="utf-8")
    with pytest.raises(DataError, match=f"mine.yaml: {field}: .*missing"):
        load_task(str(path))


def test_an_unknown_field_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"mine\.yaml: colour: 'red': unknown field"):
        load_task(task_file(tmp_path, colour="red"))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("metric", "BLEU", "must be one of bleu, rougeL, rougeLsum"),
        ("kind", "poetry", "must be one of translation, summarization"),
        ("split", "train", "must be one of the splits: test, dev"),
        ("source_limit", 0, "at least 1 token"),
        ("target_limit", "128", "must be a whole number"),
        ("target_limit", True, "must be a whole number"),
        ("source_column", None, "must be text"),
        ("title", "", "must not be empty"),
        ("config", 3, "must be text or null"),
        ("splits", ["test"], "must be a mapping"),
        ("splits", {"test": 1}, "must map text to text"),
        ("sizes", {"test": "3"}, "must map text to a whole number"),
        ("embedded", "sample.jsonl", "must be a mapping or null"),
        ("embedded", {"file": "sample.jsonl"}, "must have the fields file, source and target"),
        ("embedded", {"file": "../secret.jsonl", "source": "a", "target": "b"}, "a file without a folder"),
        ("files", "data/test.parquet", "must contain {split}"),
        ("files", None, "must be given when hub_id is"),
        ("revision", None, "must be given when hub_id is"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, field: str, value: object, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        load_task(task_file(tmp_path, **{field: value}))
    assert str(caught.value).startswith(f"mine.yaml: {field}: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize("text", ["- a list", "a: [", "just words"])
def test_a_file_that_is_no_mapping_is_an_error_of_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="task file") as caught:
        load_task(str(path))
    assert "\n" not in str(caught.value)


def test_yaml_cannot_run_code(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: !!python/object/apply:os.mkdir ['{tmp_path / 'made'}']", encoding="utf-8")
    with pytest.raises(DataError, match="task file"):
        load_task(str(path))
    assert not (tmp_path / "made").exists()


def test_overrides_replace_and_none_means_not_given() -> None:
    task = load_task("custom", source_column="de.text", target_column=None, metric="rougeLsum")
    assert (task.source_column, task.target_column, task.metric) == ("de.text", "target", "rougeLsum")


@pytest.mark.parametrize(
    ("field", "flag", "value"), [("metric", "--metric", "bleurt"), ("source_column", "--source-column", "")]
)
def test_a_wrong_override_names_its_option(field: str, flag: str, value: str) -> None:
    with pytest.raises(UsageError, match=flag):
        load_task("custom", **{field: value})


def test_an_installed_package_reads_its_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task_file(tmp_path)
    monkeypatch.setattr(tasks, "_TASK_FOLDERS", (tmp_path, tmp_path / "other"))
    assert task_names() == ["mine"]


def test_an_installation_without_tasks_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_TASK_FOLDERS", (tmp_path / "a", tmp_path / "b"))
    with pytest.raises(DataError, match="the installation has no task files"):
        task_names()


def test_these_modules_are_light() -> None:
    heavy = "{'torch', 'transformers', 'datasets', 'pandas', 'pyarrow', 'huggingface_hub', 'yaml'}"
    code = f"import sys, bild_bench.tasks, bild_bench.hub, bild_bench.data; print({heavy} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
