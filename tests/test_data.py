"""Texts from the embedded sample, hub-like folders, flat folders and single files; every mistake is one line."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bild_bench import data, data_files
from bild_bench.data import Examples, load_examples
from bild_bench.errors import DataError, UsageError
from bild_bench.hub import Fetched
from bild_bench.tasks import load_task

SHARED_HUB = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "hub"
ROWS = [{"source": f"Satz {number}", "target": f"sentence {number}"} for number in range(10)]


def load(
    path: object, task: str = "custom", split: str | None = None, limit: int | None = None, **over: str
) -> Examples:
    return load_examples(load_task(task, **over), str(path), split, limit, 0, announce=lambda _: None)


def jsonl(path: Path, rows: list[Any] = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    import pyarrow
    from pyarrow.parquet import write_table

    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(pyarrow.table(columns), path)
    return path


def text(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# What is read


@pytest.mark.parametrize(
    ("task", "folder", "split", "rows"),
    [
        ("iwslt17", "IWSLT/iwslt2017", "test", 300),
        ("iwslt17", "IWSLT/iwslt2017/iwslt2017-de-en", "validation", 888),
        ("wmt14", "wmt/wmt14", "test", 500),
        ("wmt14", "wmt/wmt14/de-en", "test", 500),
        ("xsum", "EdinburghNLP/xsum", "test", 200),
        ("cnn_dm", "abisee/cnn_dailymail", "validation", 200),
        ("cnn_dm", "abisee/cnn_dailymail/3.0.0", "test", 100),
    ],
)
def test_the_four_real_layouts(task: str, folder: str, split: str, rows: int) -> None:
    if not SHARED_HUB.is_dir():
        pytest.skip("the real texts are not on this machine")
    from pyarrow.parquet import read_table

    found = load(SHARED_HUB / folder, task, split)
    assert (found.label, found.split, found.total, len(found.examples)) == (task, split, rows, rows)
    spec = load_task(task)
    (file,) = (SHARED_HUB / folder).rglob(f"*{split}*/*.parquet" if task == "iwslt17" else f"{split}-*.parquet")
    last = read_table(file).to_pylist()[-1]
    for column, value in ((spec.source_column, found.examples[-1].source), (spec.target_column, None)):
        cell = last
        for part in column.split("."):
            cell = cell[part]
        assert cell == (found.examples[-1].references[0] if value is None else value)
    assert len({example.id for example in found.examples}) == rows


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_every_format_gives_the_same_texts(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"texts.{suffix}"
    rows = [('Größe, "ja"\nund', "size"), ("  ", "blank source stays"), ("None", "NA"), ("1984", "12")]
    if suffix == "csv":
        quoted = ["{},{}".format(*('"' + cell.replace('"', '""') + '"' for cell in row)) for row in rows]
        text(path, "\n".join(["source,target", *quoted]))
    elif suffix == "json":
        text(path, json.dumps([{"source": source, "target": target} for source, target in rows], indent=1))
    elif suffix == "jsonl":
        jsonl(path, [{"source": source, "target": target} for source, target in rows])
    else:
        parquet(path, {"source": [row[0] for row in rows], "target": [row[1] for row in rows]})
    found = load(path)
    assert [(example.source, *example.references) for example in found.examples] == rows
    assert found.label == f"custom/texts.{suffix}"


def test_an_unquoted_csv_of_numbers_is_text(tmp_path: Path) -> None:
    found = load(text(tmp_path / "a.csv", b"\xef\xbb\xbfsource,target\r\n007,true\r\n1.50,\r\n"))
    assert [(example.source, *example.references) for example in found.examples] == [("007", "true"), ("1.50", "")]


def test_several_references_and_one_side_by_side(tmp_path: Path) -> None:
    rows = [{"source": "a", "target": "b"}, {"source": "c", "target": ["d", "e"]}]
    assert [example.references for example in load(jsonl(tmp_path / "a.jsonl", rows)).examples] == [("b",), ("d", "e")]


def test_dotted_columns_reach_inside_and_may_be_real_names(tmp_path: Path) -> None:
    nested = jsonl(tmp_path / "a.jsonl", [{"t": {"de": {"x": "eins"}, "en": "one"}}])
    flat = text(tmp_path / "b.csv", "t.de.x,t.en\neins,one\n")
    for path in (nested, flat):
        (example,) = load(path, source_column="t.de.x", target_column="t.en").examples
        assert (example.source, example.references) == ("eins", ("one",))


def test_a_flat_folder_by_split_and_a_name_that_globs_would_trip_over(tmp_path: Path) -> None:
    folder = tmp_path / ".hidden [a]*?"
    jsonl(folder / "test.jsonl", ROWS[:2])
    text(folder / "val.csv", "source,target\nx,y\n")
    parquet(folder / "train-00000-of-00002.parquet", {"source": ["a"], "target": ["b"]})
    parquet(folder / "train-00001-of-00002.parquet", {"source": ["c"], "target": ["d"]})
    assert load(folder).total == 2
    assert load(folder, split="val").examples[0].source == "x"
    assert [example.source for example in load(folder, split="train").examples] == ["a", "c"]
    assert load(folder).label == "custom/.hidden [a]*?"


def test_local_files_are_never_taken_for_the_real_set(tmp_path: Path) -> None:
    rows = [{"document": "d", "summary": "s"}]
    columns = {"document": ["d"], "summary": ["s"]}
    file = jsonl(tmp_path / "flat" / "test.jsonl", rows)
    lookalike = parquet(tmp_path / "flat2" / "test-00000-of-00001.parquet", columns).parent
    root = parquet(tmp_path / "hub" / "data" / "test-00000-of-00001.parquet", columns).parents[1]
    labels = [load(path, "xsum").label for path in (file, file.parent, lookalike, root, root / "data")]
    assert labels == ["xsum@path", "xsum@path", "xsum@path", "xsum", "xsum"]


@pytest.mark.parametrize(
    ("name", "split"),
    [("test.jsonl", "test"), ("val.jsonl", "validation"), ("dev-2.jsonl", "validation"), ("mine.jsonl", "all"),
     ("test_2016.jsonl", "test"), ("testimony.jsonl", "all")],
)  # fmt: skip
def test_a_single_files_split_is_what_its_name_says(tmp_path: Path, name: str, split: str) -> None:
    path = jsonl(tmp_path / name)
    assert load(path).split == split
    assert load(path, split="held-out").split == "held-out"


def test_the_embedded_sample() -> None:
    found = load("embedded", "iwslt17")
    assert (found.label, found.split, found.origin["repository"]) == ("embedded/iwslt17", "test", None)
    assert found.total == len(found.examples) > 0
    assert load("embedded", "wmt14").fingerprint == found.fingerprint


def test_the_embedded_sample_has_one_split_and_its_own_columns() -> None:
    with pytest.raises(DataError, match="--split: 'validation': the embedded sample has one split, test"):
        load("embedded", "iwslt17", "validation")
    with pytest.raises(UsageError, match="--source-column: 'de': the embedded sample has the columns"):
        load("embedded", "iwslt17", source_column="de")


@pytest.mark.parametrize("task", ["xsum", "cnn_dm"])
def test_no_embedded_sample_says_what_to_use(task: str) -> None:
    with pytest.raises(DataError, match=f"no embedded sample for task {task} yet.*--data PATH.*--preset flan"):
        load("embedded", task)


def test_hub_data_are_only_the_splits_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(tmp_path / "data" / "validation-00000-of-00001.parquet", {"document": ["d"], "summary": ["s"]})
    asked: list[object] = []

    def fetch(*args: object, announce: Callable[[str], None]) -> Fetched:
        asked.extend(args)
        announce("downloading")
        return Fetched(tmp_path, "c" * 40)

    monkeypatch.setattr(data, "fetch", fetch)
    lines: list[str] = []
    task = load_task("xsum")
    found = load_examples(task, "hub", "validation", None, 0, lines.append)
    assert asked == ["EdinburghNLP/xsum", task.revision, "dataset", ["data/validation-*.parquet"]]
    assert (found.label, found.origin["commit"], lines) == ("xsum", "c" * 40, ["downloading"])


def test_hub_data_that_are_not_there() -> None:
    with pytest.raises(DataError, match=r"--data: 'hub': task custom has no data set on the hub.*--data PATH"):
        load("hub")
    with pytest.raises(DataError, match=r"--split: 'dev': EdinburghNLP/xsum has train, validation, test"):
        load("hub", "xsum", "dev")


# Ids, samples, fingerprints


def test_ids_are_stable_and_unique_although_rows_repeat(tmp_path: Path) -> None:
    rows = [{"source": "Danke.", "target": "Thank you."}, {"source": "x", "target": "y"}] * 3
    ids = [example.id for example in load(jsonl(tmp_path / "a.jsonl", rows)).examples]
    alone = load(jsonl(tmp_path / "b.jsonl", rows[:1])).examples[0].id
    assert len(set(ids)) == 6
    assert ids[0] == alone
    assert all(len(name) == 16 and set(name) <= set("0123456789abcdef") for name in ids)


def test_an_id_tells_source_from_reference_and_references_from_each_other(tmp_path: Path) -> None:
    rows = [
        {"source": "ab", "target": ["c"]},
        {"source": "a", "target": ["bc"]},
        {"source": "a", "target": ["b", "c"]},
        {"source": "a", "target": ["b,c"]},
    ]
    assert len({example.id for example in load(jsonl(tmp_path / "a.jsonl", rows)).examples}) == 4


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(limit=st.integers(1, 14), seed=st.integers(0, 2**32))
def test_a_sample_is_seeded_in_order_and_changes_no_example(tmp_path: Path, limit: int, seed: int) -> None:
    path = tmp_path / "a.jsonl"
    if not path.exists():
        jsonl(path)
    task = load_task("custom")
    everything = load_examples(task, str(path), None, None, seed, print)
    once, again = (load_examples(task, str(path), None, limit, seed, print) for _ in range(2))
    assert once == again
    assert once.total == 10
    assert len(once.examples) == min(limit, 10)
    assert [example.index for example in once.examples] == sorted({example.index for example in once.examples})
    assert all(everything.examples[example.index] == example for example in once.examples)
    assert (once.fingerprint == everything.fingerprint) == (limit >= 10)


def test_another_seed_draws_another_sample(tmp_path: Path) -> None:
    path = str(jsonl(tmp_path / "a.jsonl"))
    drawn = {load_examples(load_task("custom"), path, None, 3, seed, print).fingerprint for seed in range(20)}
    assert len(drawn) > 5


def test_a_fingerprint_changes_with_any_text(tmp_path: Path) -> None:
    changed = [*ROWS[:9], {"source": "Satz 9", "target": "sentence nine"}]
    before, after = (load(jsonl(tmp_path / name, rows)) for name, rows in (("a.jsonl", ROWS), ("b.jsonl", changed)))
    assert before.fingerprint != after.fingerprint
    assert before.fingerprint == load(jsonl(tmp_path / "c.jsonl")).fingerprint


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(tmp_path: Path, limit: int) -> None:
    with pytest.raises(UsageError, match=f"--limit: {limit}: must be at least 1"):
        load(jsonl(tmp_path / "a.jsonl"), limit=limit)


# Mistakes


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
    assert "give a folder or a .parquet, .jsonl, .json or .csv file" in error_of(text(tmp_path / "a.txt", "x"))
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
        ({"source": None, "target": "b"}, "column source: None: row 1 (counted from 0) is null"),
        ({"source": "a", "target": None}, "column target: None: row 1 (counted from 0) is null"),
        ({"source": "a"}, "column target: None: row 1 (counted from 0) is null"),
        ({"source": "a", "target": 5}, "column target: 5: row 1 (counted from 0) is of type int"),
        ({"source": ["a"], "target": "b"}, "column source: ['a']: row 1 (counted from 0) is of type list"),
        ({"source": "a", "target": {"x": 1}}, "column target: {'x': 1}: row 1 (counted from 0) is of type dict"),
        ({"source": "a", "target": ["b", None]}, "column target: None: row 1 (counted from 0) is null"),
        ({"source": "a", "target": []}, "column target: []: row 1 has no reference"),
    ],
)
def test_a_value_that_is_no_text_names_column_row_and_type(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    assert problem in error_of(jsonl(tmp_path / "a.jsonl", [ROWS[0], row]))


def test_a_column_of_numbers_or_nulls_in_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"source": ["a", "b"], "target": [1, 2]})
    assert "column target: 1: row 0 (counted from 0) is of type int, and must be text" in error_of(path)
    path = parquet(tmp_path / "b.parquet", {"t": [{"de": "a", "en": "b"}, None]})
    assert "row 1 (counted from 0) is null" in error_of(path, source_column="t.de", target_column="t.en")


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
        ("a.csv", "source,source\na,b\n", "names a column twice"),
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
