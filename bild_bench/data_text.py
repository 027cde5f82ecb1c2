"""Two columns of JSON, JSON Lines, CSV and TSV files, row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bild_bench.data_forms import form_of
from bild_bench.data_json import ABSENT, column_names, json_objects, look_up
from bild_bench.data_lines import Fault, opened
from bild_bench.errors import DataError

# The csv module refuses longer fields than 131,072 characters by default; a document may be longer.
_LONGEST_FIELD = 2**31 - 1
_NAMES_SHOWN = 20

Cells = tuple[object, object]


def text_rows(files: tuple[Path, ...], wanted: Mapping[str, str]) -> Iterator[Cells]:
    """The values of the two columns, row by row; a column that a row of JSON lacks is None there.

    Args:
        files: all of one form.
        wanted: option -> the column that it names, dotted where nested; the source's first.

    Raises:
        DataError: a damaged file, or a column that no row has.
    """
    form, keys = form_of(files[0]), _Keys(wanted)
    source_column = next(iter(wanted.values()))
    for file in files:
        try:
            if form in (".csv", ".tsv"):
                yield from _delimited(file, wanted, "," if form == ".csv" else "\t")
            else:
                yield from (keys.cells(row) for row in json_objects(file, source_column))
        except Fault as fault:
            raise DataError("--data", str(file), str(fault), fault.fix) from fault
        except (OSError, EOFError) as error:
            # Streams that were cut, and data that are not what the name says.
            kind = "".join(file.suffixes[-2:]).lstrip(".")
            problem, fix = f"cannot be read as {kind} ({error})", "correct the file or copy it again"
            raise DataError("--data", str(file), problem, fix) from error
    keys.require_found()


def _delimited(file: Path, wanted: Mapping[str, str], delimiter: str) -> Iterator[Cells]:
    """Rows of CSV or TSV: every cell is the text that stands there, and every row as long as the header."""
    quoting = _quoting(file) if delimiter == "\t" else csv.QUOTE_MINIMAL
    rows = _table(file, delimiter, quoting)
    # A column without a name, such as the index that pandas leaves.
    header = [name if name.strip() else "unnamed" for name in next(rows, [])]
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise Fault(f"the header names the column {twice!r} twice")
    for option, column in wanted.items():
        if column not in header:
            raise _no_column(option, column, header)
    source, target = (header.index(column) for column in wanted.values())
    yield from ((row[source], row[target]) for row in rows)


def _quoting(file: Path) -> int:
    """TSV comes with quotes as in CSV, and with tabs alone, where a quote is a character as any other.

    It is the first where the whole file can be read so.
    """
    try:
        for _ in _table(file, "\t", csv.QUOTE_MINIMAL):
            pass
    except Fault:
        return csv.QUOTE_NONE
    return csv.QUOTE_MINIMAL


def _table(file: Path, delimiter: str, quoting: Any) -> Iterator[list[str]]:
    """The header, then rows of its length; blank lines are passed over."""
    csv.field_size_limit(_LONGEST_FIELD)
    with opened(file) as lines:
        reader = csv.reader(lines, strict=True, delimiter=delimiter, quoting=quoting)
        length = None
        try:
            for row in reader:
                if not row:
                    continue
                length = len(row) if length is None else length
                if len(row) != length:
                    raise Fault(f"line {reader.line_num} has {len(row)} fields, and the header {length}")
                yield row
        except csv.Error as error:
            raise Fault(f"line {reader.line_num}: {error}") from error


class _Keys:
    """Looks columns up in rows, and keeps in mind which were ever found: a key may be absent from many rows."""

    def __init__(self, wanted: Mapping[str, str]) -> None:
        self._wanted, self._missing = wanted, dict(wanted)
        self._names: dict[str, None] = {}

    def cells(self, row: Mapping[str, Any]) -> Cells:
        """The row's source and target."""
        source, target = (self._cell(row, option, column) for option, column in self._wanted.items())
        return source, target

    def require_found(self) -> None:
        """Raises DataError for a column that no row had, where there were rows."""
        for option, column in self._missing.items():
            if self._names:
                raise _no_column(option, column, list(self._names)[:_NAMES_SHOWN])

    def _cell(self, row: Mapping[str, Any], option: str, column: str) -> object:
        found = look_up(row, column)
        if found is not ABSENT:
            self._missing.pop(option, None)
            return found
        if option in self._missing and len(self._names) < _NAMES_SHOWN:
            self._names |= dict.fromkeys(column_names(row))
        return None


def _no_column(option: str, column: str, names: list[str]) -> DataError:
    return DataError(option, column, f"no such column (there are: {', '.join(names)})", f"set {option}")
