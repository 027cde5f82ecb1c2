"""Objects of JSON and JSON Lines files, and named values in them.

By Python's own reader: it keeps a value what it is, whatever stands before and after it. pyarrow's guesses types by
blocks, refuses a column of texts and lists, and ends the process on deep nesting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from bild_bench.data_forms import form_of
from bild_bench.data_lines import Fault, opened

# Python makes no whole numbers of longer texts, and such a text may stand where nobody reads it.
_MOST_DIGITS = 4000
ABSENT = object()


def json_objects(file: Path, source_column: str) -> Iterator[dict[str, Any]]:
    """Rows: one object a line, an array of objects, or a single object, also over several lines.

    An array is held in memory as a whole; lines are not.

    Args:
        file: .json or .jsonl, both read alike.
        source_column: by which a single object is told from a table written in another way.

    Raises:
        Fault: not JSON, not objects, nested too deeply, not UTF-8, or a single object that is no row.
    """
    with opened(file) as lines:
        filled = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
        number, line = next(filled, (0, ""))
        if line.lstrip().startswith("["):
            yield from _array(line + "".join(lines), number)
        elif line.strip() == "{" or (line and form_of(file) == ".json" and not _is_json(line)):
            yield _single(_loaded(line + "".join(lines), number), file, source_column)
        elif line:
            first, second = _object(line, number), next(filled, None)
            if second is None and form_of(file) == ".json":
                first = _single(first, file, source_column)
            yield first
            for number, line in chain(() if second is None else (second,), filled):
                yield _object(line, number)


def look_up(row: Mapping[str, Any], column: str) -> object:
    """The value of a column, dotted where nested (a key may itself contain the dot); `ABSENT` where there is none."""
    if column in row:
        return row[column]
    value: object = row
    for part in column.split("."):
        if value is None:
            return None
        if not isinstance(value, dict) or part not in value:
            return ABSENT
        value = value[part]
    return value


def column_names(row: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The names of a row's values, nested ones dotted."""
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from column_names(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _array(text: str, number: int) -> Iterator[dict[str, Any]]:
    for index, item in enumerate(_loaded(text, number)):
        if not isinstance(item, dict):
            raise Fault(f"item {index} of its array (counted from 0) is not a JSON object")
        yield item


def _object(line: str, number: int) -> dict[str, Any]:
    found = _loaded(line, number)
    if not isinstance(found, dict):
        raise Fault(f"line {number} is not a JSON object")
    return found


def _single(row: object, file: Path, source_column: str) -> dict[str, Any]:
    """The one object of a file, where it is a row and no table written in another way."""
    if not isinstance(row, dict):
        raise Fault("holds neither objects nor an array of them")
    rows = next((key for key, value in row.items() if isinstance(value, list) and _all_objects(value)), None)
    by_column = isinstance(look_up(row, source_column), list | dict)
    if not by_column and (rows is None or isinstance(look_up(row, source_column), str)):
        return row
    keys = ", ".join(list(row)[:10])
    way = "in pandas: frame.to_json(PATH, orient='records', lines=True)"
    if not by_column:
        way = f"take the list out: jq '.[\"{rows}\"]' {file.name} > rows.json"
    raise Fault(f"is one JSON object (keys: {keys}), and must be an array of objects or one object per line", way)


def _all_objects(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, dict) for value in values)


def _is_json(line: str) -> bool:
    try:
        _loaded(line, 1)
    except Fault:
        return False
    return True


def _loaded(text: str, number: int) -> Any:
    """The value of a text that begins on a line of this number."""
    try:
        return json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise Fault(f"line {number + error.lineno - 1} is not valid JSON ({error.msg})") from error
    except RecursionError:
        raise Fault(f"line {number} is nested too deeply", "remove the nested value") from None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
