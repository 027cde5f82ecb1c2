"""Rows of Parquet, Arrow, JSON, CSV and TSV files as pairs of a source text and its references.

Only the two named columns are read, and as the text that stands there: what else a file holds, and of which types,
decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bild_bench.checks import MOST_CHARACTERS
from bild_bench.data_forms import form_of, is_text_form
from bild_bench.data_tables import table_rows
from bild_bench.data_text import text_rows
from bild_bench.errors import DataError

# A null cell is None as a source, and no reference as a target.
Pair = tuple[str | None, tuple[str, ...]]


@dataclass(frozen=True)
class Columns:
    """The two columns to read, dotted where nested: a source text, and a target text or a list of them."""

    source: str
    target: str

    @property
    def flags(self) -> dict[str, str]:
        """Option -> the column that it names."""
        return {"--source-column": self.source, "--target-column": self.target}


def read_pairs(files: tuple[Path, ...], columns: Columns) -> Iterator[Pair]:
    """Every row of the files, in order, without holding more than some rows in memory.

    Args:
        files: of one form; their names tell which, see `data_forms`.
        columns: see `Columns`. Empty texts and nulls are rows too.

    Raises:
        DataError: a damaged file, a column that no row has, a value that is neither text nor null, half a character (a
            lone surrogate), a text of more than `MOST_CHARACTERS`, or no rows. A fault is told when its row is reached.
    """
    rows = _cells(files, columns)
    index = -1
    for index, (source, target) in enumerate(rows):
        if source is not None and not isinstance(source, str):
            raise _not_text(columns.source, index, source)
        references = tuple(_references(target, columns.target, index))
        for column, texts in ((columns.source, [source or ""]), (columns.target, references)):
            _require_no_giant(column, index, texts)
            _require_whole_characters(column, index, texts)
        yield source, references
    if index < 0:
        raise DataError("--data", place(files), "there are no rows in it", "check how it was written")


def place(files: tuple[Path, ...]) -> str:
    """What people call the files: the one, or the folder that holds them."""
    return str(files[0] if len(files) == 1 else files[0].parent)


def _cells(files: tuple[Path, ...], columns: Columns) -> Iterator[tuple[object, object]]:
    wanted = columns.flags
    if is_text_form(form_of(files[0])):
        return text_rows(files, wanted)
    return table_rows(files, wanted)


def _references(value: object, column: str, index: int) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield item
        elif item is not None:
            raise _not_text(column, index, item)


def _require_whole_characters(column: str, index: int, texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            problem = f"row {index} (counted from 0) holds half a character ({text[error.start]!a}, a lone surrogate)"
            raise DataError(f"column {column}", text, problem, "correct the file") from error


def _require_no_giant(column: str, index: int, texts: Iterable[str]) -> None:
    """A hundred million characters take 14 GB to tokenise, of which a model would read some hundred tokens."""
    for text in texts:
        if len(text) > MOST_CHARACTERS:
            problem = f"row {index} (counted from 0) has {len(text):,} characters (allowed: {MOST_CHARACTERS:,})"
            raise DataError(f"column {column}", text, problem, "take the row out, or split its text")


def _not_text(column: str, index: int, value: object) -> DataError:
    problem = f"row {index} (counted from 0) is of type {type(value).__name__}, and must be text"
    return DataError(f"column {column}", value, problem, "name a column of texts")
