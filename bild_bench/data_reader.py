"""Rows of Parquet, JSON and CSV files as pairs of a source text and its references."""

from __future__ import annotations

import csv
import glob
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError

Pair = tuple[str, tuple[str, ...]]
# The csv module refuses longer fields than 131,072 characters by default; a document may be longer.
_LONGEST_FIELD = 2**31 - 1


def read_pairs(files: tuple[Path, ...], source_column: str, target_column: str) -> list[Pair]:
    """Every row of the files, in order.

    Args:
        files: of one format; the extension tells which.
        source_column: a column of text, dotted when nested. Empty texts stay.
        target_column: a column of text, or of lists of texts (several references).

    Raises:
        DataError: a damaged file, a missing column, a null or a value that is not text, or no rows.
    """
    pairs = []
    for index, row in enumerate(_rows(files)):
        source = _cell(row, source_column, "--source-column")
        if not isinstance(source, str):
            raise _not_text(source_column, index, source)
        pairs.append((source, _references(_cell(row, target_column, "--target-column"), target_column, index)))
    if not pairs:
        raise DataError("--data", _place(files), "there are no rows in it", "check how it was written")
    return pairs


def _references(value: object, column: str, index: int) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    for item in values:
        if not isinstance(item, str):
            raise _not_text(column, index, item)
    if not values:
        raise DataError(f"column {column}", [], f"row {index} has no reference", "take the row out or fill it in")
    return tuple(values)


def _cell(row: Mapping[str, Any], column: str, flag: str) -> object:
    # A CSV header may itself contain the dot.
    if column in row:
        return row[column]
    value: object = row
    for part in column.split("."):
        if value is None:
            return None
        if not isinstance(value, dict) or part not in value:
            raise DataError(flag, column, f"no such column (there are: {', '.join(_column_names(row))})", f"set {flag}")
        value = value[part]
    return value


def _column_names(row: Mapping[str, Any], prefix: str = "") -> list[str]:
    names = []
    for name, value in row.items():
        if isinstance(value, dict):
            names.extend(_column_names(value, f"{prefix}{name}."))
        else:
            names.append(f"{prefix}{name}")
    return names


def _not_text(column: str, index: int, value: object) -> DataError:
    found = "null" if value is None else f"of type {type(value).__name__}"
    fix = "take the row out or fill it in" if value is None else "name a column of texts"
    return DataError(f"column {column}", value, f"row {index} (counted from 0) is {found}, and must be text", fix)


def _rows(files: tuple[Path, ...]) -> Iterator[dict[str, Any]]:
    """Rows by the `datasets` library's own readers, streamed: no copy in its cache, and no stale hit from there."""
    from pyarrow import ArrowException

    suffix = files[0].suffix.lower()
    try:
        if suffix == ".parquet":
            files = _with_rows(files)
            if not files:
                return
        options = _csv_options(files) if suffix == ".csv" else {}
        # The library takes its paths for globs.
        paths = [glob.escape(str(file.absolute())) for file in files]
        with _quiet(), tempfile.TemporaryDirectory() as scratch:
            builder = _builder(suffix)(cache_dir=scratch, data_files={"rows": paths}, **options)
            yield from builder.as_streaming_dataset(split="rows")
    except (ValueError, OSError, ArrowException) as error:
        raise _damaged(files, error) from error


def _builder(suffix: str) -> Any:
    # Not by load_dataset: it counts every use on a server, local files included, and waits where there is no network.
    from datasets.packaged_modules.csv.csv import Csv
    from datasets.packaged_modules.json.json import Json
    from datasets.packaged_modules.parquet.parquet import Parquet

    return {".parquet": Parquet, ".jsonl": Json, ".json": Json, ".csv": Csv}[suffix]


def _with_rows(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """The files that have rows: the library's reader fails on an empty row group."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    filled = []
    for file in files:
        try:
            if read_metadata(file).num_rows > 0:
                filled.append(file)
        except (ArrowException, OSError) as error:
            raise _damaged((file,), error) from error
    return tuple(filled)


def _csv_options(files: tuple[Path, ...]) -> dict[str, Any]:
    """Settings under which a CSV cell is the text that stands there.

    Left alone, the reader turns "None" and "NA" into nulls and columns of digits into numbers, fills up short rows, and
    takes the first column for an index when rows are longer than the header. A column without a name, such as the index
    that pandas writes, is called "unnamed".
    """
    from datasets import Features, Value

    header: list[str] = []
    csv.field_size_limit(_LONGEST_FIELD)
    for file in files:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            try:
                header = [name if name.strip() else "unnamed" for name in next(reader, [])]
                wrong = next((row for row in reader if row and len(row) != len(header)), None)
            except csv.Error as error:
                raise ValueError(f"line {reader.line_num}: {error}") from error
            if wrong is not None:
                raise ValueError(f"line {reader.line_num} has {len(wrong)} fields, and the header {len(header)}")
            twice = next((name for name in header if header.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"the header names the column {twice!r} twice")
    features = Features({name: Value("string") for name in header})
    return {"keep_default_na": False, "names": header, "header": 0, "features": features}


@contextmanager
def _quiet() -> Iterator[None]:
    """The library logs a reader's error before it raises it; ours is one line."""
    from datasets.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _damaged(files: tuple[Path, ...], error: Exception) -> DataError:
    for file in files:
        found = None if file.suffix.lower() == ".parquet" else _problem_in_text(file)
        if found is not None:
            return DataError("--data", str(file), found, "correct the file")
    kind = files[0].suffix.lower().lstrip(".")
    return DataError(
        "--data", _place(files), f"cannot be read as {kind} ({error})", "correct the file or copy it again"
    )


def _problem_in_text(file: Path) -> str | None:
    """The first line that is not UTF-8 or not JSON, since the readers count by blocks and name no line."""
    lines = []
    for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
        try:
            lines.append(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            return f"line {number} is not UTF-8 text"
    if file.suffix.lower() == ".csv":
        return None
    try:
        if lines[0].lstrip().startswith("["):
            json.loads("\n".join(lines))
            return None
    except json.JSONDecodeError as error:
        return f"line {error.lineno} is not valid JSON ({error.msg})"
    return next((problem for number, line in enumerate(lines, 1) if (problem := _problem_in_line(number, line))), None)


def _problem_in_line(number: int, line: str) -> str | None:
    if not line.strip():
        return None
    try:
        return None if isinstance(json.loads(line), dict) else f"line {number} is not a JSON object"
    except json.JSONDecodeError as error:
        return f"line {number} is not valid JSON ({error.msg})"


def _place(files: tuple[Path, ...]) -> str:
    return str(files[0] if len(files) == 1 else files[0].parent)
