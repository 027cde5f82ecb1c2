"""An experiment's directory: a new one made, and held while it is written to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from bild_bench.errors import RunError
from bild_bench.parquet import writing
from bild_bench.whole_files import file_name

LOCK = ".lock"


def new_directory(root: Path, name: str) -> Path:
    """Make root/<UTC time>-<name>, never one that exists.

    Raises:
        UsageError: it cannot be made there. RunError: the disk is full.
    """
    stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{file_name(re.sub(r'[^A-Za-z0-9._-]+', '-', name))}"
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            directory = root / (stem if number == 1 else f"{stem}-{number}")
            with suppress(FileExistsError):
                directory.mkdir()
                break
    return directory


@contextmanager
def lock(directory: Path, option: str | None = None) -> Iterator[None]:
    """Hold the right to write into a directory; the system takes it back from a killed process.

    Args:
        option: that names the directory; None for a results directory, which several do.

    Raises:
        RunError: another process holds it. UsageError: the directory is missing or cannot be written to.
    """
    from filelock import FileLock, Timeout

    held = FileLock(directory / LOCK, timeout=0)
    field = "results" if option is None else option
    with writing(directory, field):
        try:
            held.acquire()
        except Timeout:
            other = "results directory" if option is None else option
            fix = f"wait until it ends, or choose another {other}"
            raise RunError(field, str(directory), "another process is writing there", fix) from None
    try:
        yield
    finally:
        held.release()
