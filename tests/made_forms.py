"""Data files as people have them, and what each must come to: the cases of the tests and of docs/INPUTS.md.

Every readable one holds the same two texts.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet as pq

TEXTS = [("eins", "one"), ("1998-05-04", "1998-05-04")]
ROWS = [{"source": source, "target": target} for source, target in TEXTS]
COLUMNS = {name: [row[name] for row in ROWS] for name in ("source", "target")}
_DEEP = "[" * 100_000 + "]" * 100_000


@dataclass(frozen=True)
class Form:
    """One kind of file or folder.

    Args:
        what: in words.
        name: the path that is given as --data.
        make: writes it; takes the folder that it lies in.
        refused: a part of the line with which it is refused; "" where both texts are read.
        columns: of source and target.
    """

    what: str
    name: str
    make: Callable[[Path], object]
    refused: str = ""
    columns: tuple[str, str] = ("source", "target")


def lines(rows: list[Any]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def _text(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(content, encoding="utf-8")


def _bytes(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _zstd(name: str, content: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        with pyarrow.CompressedOutputStream(str(folder / name), "zstd") as stream:
            stream.write(content.encode())

    return make


def _parquet(name: str, columns: dict[str, Any]) -> Callable[[Path], object]:
    return lambda folder: pq.write_table(pyarrow.table(columns), folder / name)


def _parts(folder: Path) -> None:
    (folder / "parts").mkdir()
    for number, row in enumerate(ROWS):
        table = pyarrow.Table.from_pylist([row | ({"late": 5} if number else {})])
        pq.write_table(table, folder / "parts" / f"test-{number:05}-of-00002.parquet")


def _rare(folder: Path) -> None:
    entries = pyarrow.array([[("a", 1)], []], pyarrow.map_(pyarrow.string(), pyarrow.int64()))
    ids = pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), pyarrow.array([b"0" * 16] * 2, pyarrow.binary(16)))
    held = {"map": entries, "id": ids, "when": [datetime(2020, 1, 1, tzinfo=UTC)] * 2, **COLUMNS}
    pq.write_table(pyarrow.table(held), folder / "rare.parquet")


def _saved(folder: Path) -> Path:
    from datasets import Dataset

    Dataset.from_dict({"id": [1, 2], **COLUMNS}).save_to_disk(str(folder / "saved"))
    return folder / "saved"


def _saved_splits(folder: Path) -> None:
    from datasets import Dataset, DatasetDict

    pairs = [{"de": row["source"], "en": row["target"]} for row in ROWS]
    held = {"train": Dataset.from_dict({"translation": pairs[:1]}), "test": Dataset.from_dict({"translation": pairs})}
    DatasetDict(held).save_to_disk(str(folder / "splits"))


def _saved_without_its_data(folder: Path) -> None:
    next(_saved(folder).glob("*.arrow")).unlink()


def _arrow_file(folder: Path) -> None:
    table = pyarrow.table({"id": [1, 2], **COLUMNS})
    with pyarrow.OSFile(str(folder / "a.arrow"), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


_CSV = "id,source,target\n1,eins,one\n2,1998-05-04,1998-05-04\n"
_TSV = _CSV.replace(",", "\t")
_CHANGING = [{**ROWS[0], "score": 5}, {**ROWS[1], "score": {"mean": "n/a"}, "late": [1]}]
_PAIRS = [{"translation": {"de": row["source"], "en": row["target"]}} for row in ROWS]
_PACKED = gzip.compress(lines(ROWS).encode())

FORMS = (
    Form("JSON Lines", "a.jsonl", _text("a.jsonl", lines(ROWS))),
    Form("JSON Lines, other keys of changing types or late", "b.jsonl", _text("b.jsonl", lines(_CHANGING))),
    Form(
        "JSON Lines, nested columns",
        "nested.jsonl",
        _text("nested.jsonl", lines(_PAIRS)),
        columns=("translation.de", "translation.en"),
    ),
    Form("JSON Lines named .json", "lines.json", _text("lines.json", lines(ROWS))),
    Form("JSON, one array", "array.json", _text("array.json", json.dumps(ROWS, indent=1))),
    Form(
        "JSON, one object with the rows inside",
        "object.json",
        _text("object.json", json.dumps({"version": 1, "data": ROWS})),
        "is one JSON object (keys: version, data), and must be an array of objects or one object per line; "
        "take the list out: jq '.[\"data\"]' object.json > rows.json",
    ),
    Form(
        "JSON, one object of columns (pandas' own)",
        "columns.json",
        _text("columns.json", json.dumps(COLUMNS, indent=1)),
        "in pandas: frame.to_json(PATH, orient='records', lines=True)",
    ),
    Form(
        "JSON Lines, a line nested 100,000 deep",
        "deep.jsonl",
        _text("deep.jsonl", lines(ROWS[:1]) + f'{{"source": "a", "target": "b", "x": {_DEEP}}}\n'),
        "line 2 is nested too deeply",
    ),
    Form("JSON, an array nested 100,000 deep", "deep.json", _text("deep.json", _DEEP), "line 1 is nested too deeply"),
    Form(
        "JSON with a lone surrogate",
        "half.json",
        _text("half.json", json.dumps([{"source": "a\ud800", "target": "b"}])),
        "column source: 'a\\ud800': row 0 (counted from 0) holds half a character",
    ),
    Form("CSV", "a.csv", _text("a.csv", _CSV)),
    Form("TSV", "a.tsv", _text("a.tsv", _TSV)),
    Form("CSV in UTF-16", "wide.csv", _bytes("wide.csv", _CSV.encode("utf-16")), "is UTF-16 text; save it as UTF-8"),
    Form("gzip", "a.jsonl.gz", _bytes("a.jsonl.gz", _PACKED)),
    Form("gzip, CSV", "a.csv.gz", _bytes("a.csv.gz", gzip.compress(_CSV.encode()))),
    Form("bzip2, TSV", "a.tsv.bz2", _bytes("a.tsv.bz2", bz2.compress(_TSV.encode()))),
    Form("Zstandard, JSON Lines", "a.jsonl.zst", _zstd("a.jsonl.zst", lines(ROWS))),
    Form("Zstandard, JSON", "a.json.zst", _zstd("a.json.zst", json.dumps(ROWS))),
    Form("gzip that was cut", "cut.jsonl.gz", _bytes("cut.jsonl.gz", _PACKED[:-12]), "cannot be read as jsonl.gz"),
    Form("not gzip at all", "no.csv.gz", _text("no.csv.gz", _CSV), "cannot be read as csv.gz"),
    Form("xz", "a.jsonl.xz", _bytes("a.jsonl.xz", b"x"), "unknown kind of file; unpack it with xz -d"),
    Form("zip", "a.zip", _bytes("a.zip", b"x"), "unknown kind of file; unpack it, and give the file inside"),
    Form("Parquet", "a.parquet", _parquet("a.parquet", {"id": [1, 2], **COLUMNS})),
    Form("Parquet, maps, extension types and times in other columns", "rare.parquet", _rare),
    Form("Parquet in parts, the second with one column more", "parts", _parts),
    Form(
        "Parquet, a target that is a date",
        "date.parquet",
        _parquet("date.parquet", {"source": COLUMNS["source"], "target": [datetime(1998, 5, 4, tzinfo=UTC)] * 2}),
        "row 0 (counted from 0) is of type datetime, and must be text; name a column of texts",
    ),
    Form("save_to_disk, one set", "saved", _saved),
    Form("save_to_disk, splits", "splits", _saved_splits, columns=("translation.de", "translation.en")),
    Form(
        "save_to_disk without its data", "saved", _saved_without_its_data, "is not there; copy the whole folder again"
    ),
    Form("Arrow's file format", "a.arrow", _arrow_file),
    Form("Excel", "a.xlsx", _bytes("a.xlsx", b"PK"), "unknown kind of file; save it as CSV or JSON Lines"),
    Form("one text file a side", "a.txt", _text("a.txt", "eins\n"), "put both sides into one file with a header"),
    Form(
        "a named pipe",
        "pipe.jsonl",
        lambda folder: os.mkfifo(folder / "pipe.jsonl"),
        "is not a regular file (a pipe or a device); write its content to a file",
    ),
)
