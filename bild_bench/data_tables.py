"""Two columns of Parquet and Arrow files, by the readers' own projection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bild_bench.data_forms import form_of
from bild_bench.errors import DataError

_ROWS_AT_ONCE = 4096
_FILE_MAGIC = b"ARROW1"


def table_rows(files: tuple[Path, ...], wanted: Mapping[str, str]) -> Iterator[tuple[object, object]]:
    """The values of the two columns, row by row.

    Each file is looked at by itself: parts of one set may differ in all the other columns.

    Args:
        files: all .parquet or all .arrow (the stream that `save_to_disk` leaves, or Arrow's file format).
        wanted: option -> the column that it names, dotted where nested; the source's first.

    Raises:
        DataError: a damaged file, or one without a column.
    """
    from pyarrow import ArrowException

    batches = _parquet if form_of(files[0]) == ".parquet" else _arrow
    for file in files:
        try:
            for batch, paths in batches(file, wanted):
                source, target = (_values(batch, path) for path in paths)
                yield from zip(source, target, strict=True)
        except (ArrowException, OSError) as error:
            kind = form_of(file).lstrip(".")
            problem = f"cannot be read as {kind} ({error})"
            raise DataError("--data", str(file), problem, "correct the file or copy it again") from error


def _parquet(file: Path, wanted: Mapping[str, str]) -> Iterator[tuple[Any, list[list[str]]]]:
    from pyarrow import OSFile
    from pyarrow.parquet import ParquetFile

    # Opened here: the reader would take a name such as "a:b.parquet" for an address.
    with OSFile(str(file)) as raw, ParquetFile(raw) as opened:
        paths = _paths(opened.schema_arrow, wanted)
        if opened.metadata.num_rows == 0:
            return
        names = [".".join(path) for path in paths]
        for batch in opened.iter_batches(_ROWS_AT_ONCE, columns=names):
            yield batch, paths


def _arrow(file: Path, wanted: Mapping[str, str]) -> Iterator[tuple[Any, list[list[str]]]]:
    import pyarrow

    with pyarrow.memory_map(str(file)) as mapped:
        is_file = mapped.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        mapped.seek(0)
        opening = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
        with opening(mapped) as found:
            schema = found.schema
        mapped.seek(0)
        paths = _paths(schema, wanted)
        fields = sorted({schema.get_field_index(path[0]) for path in paths})
        options = pyarrow.ipc.IpcReadOptions(included_fields=fields)
        with opening(mapped, options=options) as found:
            whole = (found.get_batch(number) for number in range(found.num_record_batches)) if is_file else found
            for batch in whole:
                for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                    yield batch.slice(start, _ROWS_AT_ONCE), paths


def _paths(schema: Any, wanted: Mapping[str, str]) -> list[list[str]]:
    """Each column as the names on the way to it; a name may itself contain the dot."""
    return [_path(schema, column, option) for option, column in wanted.items()]


def _path(schema: Any, column: str, option: str) -> list[str]:
    import pyarrow

    if column in schema.names:
        return [column]
    path = column.split(".")
    kind: Any = schema.field(path[0]).type if path[0] in schema.names else None
    for name in path[1:]:
        inside = kind is not None and pyarrow.types.is_struct(kind) and kind.get_field_index(name) >= 0
        kind = kind.field(name).type if kind is not None and inside else None
    if kind is None:
        names = ", ".join(_column_names(schema))
        raise DataError(option, column, f"no such column (there are: {names})", f"set {option}")
    return path


def _column_names(fields: Any, prefix: str = "") -> Iterator[str]:
    import pyarrow

    for field in fields:
        if pyarrow.types.is_struct(field.type):
            yield from _column_names(field.type, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def _values(batch: Any, path: list[str]) -> list[object]:
    values: list[object] = batch.column(path[0]).to_pylist()
    for name in path[1:]:
        values = [None if value is None else value[name] for value in values]  # type: ignore[index]
    return values
