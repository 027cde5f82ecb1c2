"""Data that cannot be used: every mistake is one line that names the file, the column or the row."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench import data_files
from bild_bench.data import load_examples
from bild_bench.errors import DataError, UsageError
from bild_bench.tasks import load_task
from tests.made_data import ROWS, jsonl, load, parquet, text


def error_of(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(DataError) as caught:
        load(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_such_path(tmp_path: Path) -> None:
    assert "there is no such file or folder; give a file or a folder that exists" in error_of(tmp_path / "none")
    assert "--data hub for EdinburghNLP/xsum (a hub name is not a path)" in error_of("EdinburghNLP/xsum", "xsum")
    with pytest.raises(UsageError, match="must be embedded, hub or a path"):
        load("")


def test_an_unknown_extension_and_a_folder_without_data(tmp_path: Path) -> None:
    wanted = "give a folder or a .parquet, .arrow, .jsonl, .json, .csv or .tsv file"
    assert f"(printf 'source\\ttarget\\n'; paste A B) > texts.tsv, or {wanted}" in error_of(
        text(tmp_path / "a.txt", "x")
    )
    message = error_of(tmp_path, "xsum")
    assert "no data files of task xsum" in message
    assert "data/{split}-*.parquet" in message


def test_a_missing_split_lists_those_that_are_there(tmp_path: Path) -> None:
    jsonl(tmp_path / "flat" / "test.jsonl")
    parquet(tmp_path / "flat" / "train-00000-of-00001.parquet", {"source": ["a"], "target": ["b"]})
    assert "--split: 'dev': not in" in error_of(tmp_path / "flat", split="dev")
    assert "(found: test, train)" in error_of(tmp_path / "flat", split="dev")
    parquet(tmp_path / "hub" / "iwslt2017-de-en" / "train" / "0000.parquet", {"a": ["b"]})
    assert "--split: 'test': not in" in error_of(tmp_path / "hub", "iwslt17")
    assert "(found: train)" in error_of(tmp_path / "hub", "iwslt17")


def test_splits_are_listed_by_the_names_that_a_user_gives(tmp_path: Path) -> None:
    parquet(tmp_path / "data" / "validation-00000-of-00001.parquet", {"document": ["d"], "summary": ["s"]})
    task = replace(load_task("xsum"), splits={"dev": "validation", "test": "test"})
    assert data_files.locate(tmp_path, task, "dev").layout == "hub"
    with pytest.raises(DataError, match=r"found: dev"):
        data_files.locate(tmp_path, task, "test")


def test_two_files_for_one_split(tmp_path: Path) -> None:
    jsonl(tmp_path / "test.jsonl")
    text(tmp_path / "test.csv", "source,target\na,b\n")
    assert "several files for split test: test.csv, test.jsonl" in error_of(tmp_path)


def test_a_missing_part_is_noticed(tmp_path: Path) -> None:
    parquet(tmp_path / "data" / "test-00001-of-00002.parquet", {"document": ["d"], "summary": ["s"]})
    assert "test-*-of-00002.parquet has 1 of 2 parts" in error_of(tmp_path, "xsum")


def test_a_missing_column_lists_the_columns_nested_ones_too(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"id": 1, "translation": {"de": "a", "en": "b"}}])
    expected = "no such column (there are: id, translation.de, translation.en); set --source-column"
    assert f"--source-column: 'source': {expected}" in error_of(path)
    assert "--target-column: 'translation.fr'" in error_of(
        path, source_column="translation.de", target_column="translation.fr"
    )


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"source": "a", "target": 5}, "column target: 5: row 1 (counted from 0) is of type int"),
        ({"source": ["a"], "target": "b"}, "column source: ['a']: row 1 (counted from 0) is of type list"),
        ({"source": "a", "target": {"x": 1}}, "column target: {'x': 1}: row 1 (counted from 0) is of type dict"),
        ({"source": "a", "target": ["b", 5]}, "column target: 5: row 1 (counted from 0) is of type int"),
        (
            {"source": "a\ud800", "target": "b"},
            "column source: 'a\\ud800': row 1 (counted from 0) holds half a character",
        ),
        ({"source": "a", "target": ["b", "\udfff"]}, "row 1 (counted from 0) holds half a character ('\\udfff'"),
    ],
)
def test_a_value_that_is_no_text_names_column_row_and_type(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    assert problem in error_of(jsonl(tmp_path / "a.jsonl", [ROWS[0], row]))


@pytest.mark.parametrize(
    ("row", "source", "references"),
    [
        ({"source": None, "target": "b"}, None, ("b",)),
        ({"source": "a", "target": None}, "a", ()),
        ({"source": "a"}, "a", ()),
        ({"source": "a", "target": ["b", None]}, "a", ("b",)),
        ({"source": "a", "target": []}, "a", ()),
        ({"source": "a", "target": ""}, "a", ("",)),
    ],
)
def test_a_null_cell_is_a_row(tmp_path: Path, row: dict[str, Any], source: str | None, references: Any) -> None:
    example = load(jsonl(tmp_path / "a.jsonl", [ROWS[0], row])).examples[1]
    assert (None if example.null_source else example.source, example.references) == (source, references)
    assert example.answered == (references == ("b",))


def test_a_column_of_numbers_or_nulls_in_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"source": ["a", "b"], "target": [1, 2]})
    assert "column target: 1: row 0 (counted from 0) is of type int, and must be text" in error_of(path)
    path = parquet(tmp_path / "b.parquet", {"t": [{"de": "a", "en": "b"}, None]})
    found = load(path, source_column="t.de", target_column="t.en").examples
    assert [(text.null_source, text.references) for text in found] == [(False, ("b",)), (True, ())]


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "json", "csv"])
def test_an_empty_file(tmp_path: Path, suffix: str) -> None:
    assert "the file is empty" in error_of(text(tmp_path / f"a.{suffix}", ""))


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", "\n\n"), ("a.json", "[]"), ("a.csv", "source,target\n")])
def test_a_file_without_rows(tmp_path: Path, name: str, content: str) -> None:
    assert "there are no rows in it" in error_of(text(tmp_path / name, content))


def test_parquet_without_rows(tmp_path: Path) -> None:
    assert "there are no rows in it" in error_of(parquet(tmp_path / "a.parquet", {"source": [], "target": []}))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", '{"source": "a", "target": "b"}\n{"source": "c", "tar', "line 2 is not valid JSON"),
        ("a.jsonl", '{"source": "a", "target": "b"}\n\n5\n', "line 3 is not a JSON object"),
        ("a.jsonl", "plain words\n", "line 1 is not valid JSON"),
        ("a.json", '[{"source": "a", "target": "b"},\n{"source": ]', "line 2 is not valid JSON"),
        ("a.jsonl", b'{"source": "a", "target": "b"}\n{"source": "\xe4", "target": "b"}\n', "line 2 is not UTF-8 text"),
        ("a.csv", b"source,target\na,b\n\xe4,d\n", "line 3 is not UTF-8 text"),
        ("a.csv", "source,target\na,b,c\n", "line 2 has 3 fields, and the header 2"),
        ("a.csv", "source,target\na,b\nc\n", "line 3 has 1 fields, and the header 2"),
        ("a.csv", 'source,target\na,"b\nc,d\n', "unexpected end of data"),
        ("a.csv", ",,source,target\n0,1,a,b\n", "names the column 'unnamed' twice"),
        ("a.csv", "source,source\na,b\n", "names the column 'source' twice"),
        ("a.parquet", "not Parquet at all", "cannot be read as parquet"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str | bytes, problem: str
) -> None:
    message = error_of(text(tmp_path / name, content))
    assert problem in message
    assert str(tmp_path / name) in message
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_cut_parquet_file(tmp_path: Path, share: float) -> None:
    whole = parquet(tmp_path / "whole.parquet", {"source": [str(n) for n in range(5000)], "target": ["b"] * 5000})
    content = whole.read_bytes()
    assert "cannot be read as parquet" in error_of(text(tmp_path / "cut.parquet", content[: int(len(content) * share)]))


def test_parquet_with_a_hole_in_it(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"source": [f"text {n}" for n in range(5000)], "target": ["b"] * 5000})
    content = path.read_bytes()
    text(path, content[:200] + b"\0" * 5000 + content[5200:])
    assert "cannot be read as parquet" in error_of(path)


def test_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = jsonl(tmp_path / "a.jsonl")
    task = load_task("custom")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(DataError, match=r"cannot be read \(Permission denied\); check its permissions"):
        load_examples(task, str(path), None, None, 0, print)


def test_local_files_are_read_without_any_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def look_up(*where: object, **_: object) -> None:
        asked.append(where)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    load(jsonl(tmp_path / "a.jsonl"))
    load(text(tmp_path / "a.csv", "source,target\na,b\n"))
    load(parquet(tmp_path / "a.parquet", {"source": ["a"], "target": ["b"]}))
    assert asked == []


def test_nothing_is_kept_in_the_librarys_cache(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", ROWS[:1])
    first = load(path)
    # The same size and time: a cache keyed on them would give the old row.
    before = path.stat()
    text(path, path.read_text(encoding="utf-8").replace("Satz", "SATZ"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load(path).examples[0].source == "SATZ 0" != first.examples[0].source


def test_a_hub_snapshot_of_links_is_read(tmp_path: Path) -> None:
    blob = parquet(tmp_path / "blobs" / "f00", {"document": ["d"], "summary": ["s"]})
    link = tmp_path / "snapshots" / "c0ffee" / "data" / "test-00000-of-00001.parquet"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    assert load(link.parents[1], "xsum").label == "xsum"
    shutil.rmtree(tmp_path / "blobs")
    assert "no data files of task xsum" in error_of(link.parents[1], "xsum")
