"""Whole Parquet files or none: writing in one step, reading with a clear word about what is damaged."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bild_bench.errors import DataError, RunError, UsageError
from bild_bench.whole_files import whole_file

_FIELD = "results"
_MANY_ROWS = 1000
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


def save_table(path: Path, table: pa.Table) -> None:
    """Write a file beside its place and move it there in one step; after a failure nothing of it is left.

    Raises:
        OSError: as the system says it; see `writing`.
    """
    # Not by its name: the library takes "a:b" for an address.
    with whole_file(path) as part, part.open("wb") as file:
        pq.write_table(table, file, write_page_checksum=True)


def load_table(path: Path, schema: pa.Schema | None, columns: list[str] | None = None) -> pa.Table:
    """Read a file, or only some columns of it.

    Args:
        schema: what the file must hold; None takes any.

    Raises:
        FileNotFoundError: no such file.
        DataError: it is damaged, no Parquet file, or of another schema; the file is named.
    """
    # Not read_table: that takes "name=value" folders above the file for columns. Nor its own opening of a path: that
    # takes "a:b" for an address.
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            # A pipe without a writer would be waited for without end.
            raise DataError(_FIELD, str(path), "is not a regular file", "give a directory that bild-bench wrote")
        with path.open("rb") as opened, pq.ParquetFile(opened, page_checksum_verification=True) as file:
            if schema is not None and not file.schema_arrow.equals(schema):
                raise foreign(path)
            # For a small file, and a report reads thousands, starting threads takes longer than reading.
            return file.read(columns, use_threads=file.metadata.num_rows > _MANY_ROWS)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(path) from error
    except (pa.ArrowException, OSError) as error:
        problem = f"damaged, or cannot be read as Parquet ({str(error).rstrip('.')})"
        raise DataError(_FIELD, str(path), problem, "restore it from a copy, or move it away and run again") from error


def foreign(path: Path) -> DataError:
    """The error for a Parquet file of somebody else's."""
    fix = "give a directory that bild-bench wrote"
    return DataError(_FIELD, str(path), "not a results file of bild-bench", fix)


@contextmanager
def writing(directory: Path, field: str = _FIELD) -> Iterator[None]:
    """Turn what the system says about a write into one line that names the directory.

    Args:
        field: what people call it: the option that names it, where there is one.

    Raises:
        RunError: the disk, or the user's share of it, is full.
        UsageError: no permission, a file in the way, a read-only disk, and all else.
    """
    try:
        yield
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        if error.errno in _DISK_FULL:
            fix = "free some space and run the same command again: finished texts are kept"
            raise RunError(field, str(directory), problem, fix) from error
        raise UsageError(field, str(directory), problem, "choose a directory that you may write to") from error
