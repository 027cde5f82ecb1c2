"""Files and folders as people have them: read as the texts they hold, or refused by name with what to do."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest

from bild_bench.data import load_examples
from bild_bench.errors import BildBenchError, DataError
from bild_bench.tasks import load_task
from tests.made_data import jsonl, load, parquet, text
from tests.made_forms import FORMS, TEXTS, Form


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.what)
def test_a_form_is_read_or_refused_by_name(tmp_path: Path, form: Form) -> None:
    form.make(tmp_path)
    columns = dict(zip(("source_column", "target_column"), form.columns, strict=True))
    if not form.refused:
        found = load(tmp_path / form.name, **columns).examples
        assert [(text.source, *text.references) for text in found] == TEXTS
        return
    with pytest.raises(DataError) as caught:
        load(tmp_path / form.name, **columns)
    assert form.refused in str(caught.value)
    assert form.name in str(caught.value) or "row 0" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_that_appears_only_late_is_found_and_one_that_never_does_is_missing(tmp_path: Path) -> None:
    rows = [{"source": f"Satz {number}"} for number in range(20_000)]
    path = jsonl(tmp_path / "a.jsonl", [*rows, {"source": "last", "target": "there"}])
    found = load(path).examples
    assert (found[0].references, found[-1].references) == ((), ("there",))
    with pytest.raises(DataError, match=r"--target-column: 'aim': no such column \(there are: source, target\); set"):
        load(path, target_column="aim")


def test_a_whole_number_of_five_thousand_digits_where_nobody_looks(tmp_path: Path) -> None:
    found = load(text(tmp_path / "a.jsonl", '{"n": ' + "1" * 5000 + ', "source": "a", "target": "b"}'))
    assert found.examples[0].source == "a"


def test_tsv_with_quotes_as_pandas_writes_it_and_with_tabs_alone(tmp_path: Path) -> None:
    cells = ['He said "no".', '"Yes"', "a\tb", "two\nlines"]
    pd.DataFrame({"source": cells, "target": cells}).to_csv(tmp_path / "quoted.tsv", sep="\t", index=False)
    assert [example.source for example in load(tmp_path / "quoted.tsv").examples] == cells
    plain = ['"No," he said', '5" nails', '"Yes"']
    rows = "".join(f"{cell}\t{cell}\n" for cell in plain)
    assert [text.source for text in load(text(tmp_path / "plain.tsv", "source\ttarget\n" + rows)).examples] == plain


def test_csv_is_read_as_pythons_reader_reads_it(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", 'source,n,target\n"a ""b"" c",01,"x,y"\n NA ,1e5,"two\r\nlines"\n')
    with path.open(newline="", encoding="utf-8") as stream:
        expected = [(row["source"], row["target"]) for row in csv.DictReader(stream)]
    assert [(example.source, *example.references) for example in load(path).examples] == expected


def test_a_saved_set_is_one_split_by_its_own_name(tmp_path: Path) -> None:
    from datasets import Dataset, NamedSplit

    saved = Dataset.from_dict({"source": ["a"], "target": ["b"]}, split=NamedSplit("validation"))
    saved.save_to_disk(str(tmp_path / "saved"))
    assert load(tmp_path / "saved").split == "validation"
    with pytest.raises(DataError, match=r"--split: 'train': not in .*saved \(found: validation\)"):
        load(tmp_path / "saved", split="train")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("state.json", {"_data_files": [{"filename": "../a.arrow"}]}, "is not what save_to_disk writes"),
        ("state.json", {"_data_files": 5}, "is not what save_to_disk writes"),
        ("dataset_dict.json", {"splits": ["../x"]}, "is not what save_to_disk writes"),
        ("dataset_dict.json", {"splits": ["test"]}, "/test': holds no saved data set"),
        ("dataset_dict.json", {"splits": ["train"]}, "--split: 'test': not in"),
    ],
)
def test_a_damaged_saved_set(tmp_path: Path, name: str, content: object, problem: str) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(BildBenchError) as caught:
        load(tmp_path)
    assert problem in str(caught.value)


def test_a_sample_of_a_large_file_does_not_hold_the_file(tmp_path: Path) -> None:
    # 40 MB of text; as objects in memory they would take more.
    words = "wort " * 80
    rows = 50_000
    path = parquet(
        tmp_path / "a.parquet",
        {"source": [f"{number} {words}" for number in range(rows)], "target": [words] * rows},
    )
    task = load_task("custom")
    tracemalloc.start()
    try:
        found = load_examples(task, str(path), None, 10, 0, print)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.total, len(found.examples)) == (rows, 10)
    assert peak < 16e6


def test_a_sample_tells_repeated_rows_apart_as_the_whole_does(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"source": "Danke.", "target": "Thanks."}] * 30)
    whole = load(path).examples
    drawn = load(path, limit=7).examples
    assert [whole[example.index] for example in drawn] == list(drawn)
