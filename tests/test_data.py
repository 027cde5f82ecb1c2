"""Texts from the embedded sample, hub-like folders, flat folders and single files; every mistake is one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bild_bench import data
from bild_bench.data import EMBEDDED_FOLDER, load_examples
from bild_bench.errors import DataError, UsageError
from bild_bench.hub import Fetched
from bild_bench.tasks import load_task
from tests.made_data import ROWS, jsonl, load, parquet, text

SHARED_HUB = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "hub"
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


@pytest.mark.parametrize("blank", ["", " ", '""'])
def test_the_nameless_index_column_that_pandas_writes_is_read_over(tmp_path: Path, blank: str) -> None:
    found = load(text(tmp_path / "a.csv", f"{blank},source,target\n0,eins,one\n1,zwei,two\n"))
    assert [(example.source, example.references) for example in found.examples] == [
        ("eins", ("one",)),
        ("zwei", ("two",)),
    ]
    numbers = load(tmp_path / "a.csv", source_column="unnamed")
    assert [example.source for example in numbers.examples] == ["0", "1"]


def test_texts_are_said_to_be_missing_only_where_the_tasks_file_knows_better(tmp_path: Path) -> None:
    lines: list[str] = []
    rows = jsonl(tmp_path / "test.jsonl", [{"document": "d", "summary": "s"}] * 3)
    found = load_examples(load_task("xsum"), str(rows), None, 2, 0, lines.append)
    assert (found.total, found.expected) == (3, 11334)
    assert lines == ["3 of 11,334 texts of the test split are there"]
    mine = load_examples(load_task("xsum"), str(rows), "mine", None, 0, lines.append)
    embedded = load_examples(load_task("iwslt17"), "embedded", None, None, 0, lines.append)
    assert (mine.expected, embedded.expected, len(lines)) == (None, None, 1)


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(UsageError, match="--split: '': is empty; leave it out for the task's own, test"):
        load("embedded", "iwslt17", "")


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


@pytest.mark.parametrize(("task", "column"), [("xsum", "summary"), ("cnn_dm", "highlights")])
def test_one_embedded_file_serves_two_tasks(task: str, column: str) -> None:
    found = load("embedded", task)
    lines = (EMBEDDED_FOLDER / "summaries.jsonl").read_text("utf-8").splitlines()
    assert found.label == f"embedded/{task}"
    assert [text.references for text in found.examples] == [(json.loads(line)[column],) for line in lines]


def test_no_embedded_sample_says_what_to_use() -> None:
    with pytest.raises(DataError, match=r"no embedded sample for task custom yet.*--data PATH"):
        load("embedded", "custom")


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
    assert (found.label, found.origin["commit"], lines) == (
        "xsum",
        "c" * 40,
        ["downloading", "1 of 11,332 texts of the validation split are there"],
    )
    assert (found.total, found.expected) == (1, 11332)


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
