"""Numbers and paths that a person gave, checked and made plain before anything is read or written."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bild_bench.errors import UsageError
from bild_bench.measure.machine import usable_cores

# The resampling of the report takes no larger seeds.
_LARGEST_SEED = 2**32 - 1
# Of one text: a very long book has some millions.
MOST_CHARACTERS = 10_000_000
_ADDRESS = r"(?i)(s3|gs|gcs|az|abfss?|hdfs|hf|https?|ftp|ssh|file)://"
# More threads than a few a core only wait for one another, and thousands of them make libraries abort.
_THREADS_A_CORE = 4


def check_seed(seed: object) -> None:
    """Is it a whole number from 0 to 2**32 - 1?

    Raises:
        UsageError: it is not.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _LARGEST_SEED:
        raise UsageError("--seed", seed, f"must be a whole number from 0 to {_LARGEST_SEED}", "leave it out for 0")


def check_threads(threads: int | None) -> None:
    """Can this many threads compute here? None is always right.

    Raises:
        UsageError: none, or more than four for each usable core.
    """
    if threads is not None:
        _check_by_cores("--threads", threads, "leave it out for torch's own choice")


def check_processes(processes: int) -> None:
    """Can this many processes train here?

    Raises:
        UsageError: none, or more than four for each usable core: each holds a model of its own.
    """
    _check_by_cores("--processes", processes, "leave it out for 1")


def _check_by_cores(option: str, count: int, fix: str) -> None:
    if count < 1:
        raise UsageError(option, count, "must be 1 or more", fix)
    cores = usable_cores()
    if cores is not None and count > _THREADS_A_CORE * cores:
        most = _THREADS_A_CORE * cores
        raise UsageError(
            option, count, f"must be at most {most}, {_THREADS_A_CORE} times the usable cores ({cores})", fix
        )


def folder(option: str, value: str | Path, kind: str = "directory") -> Path:
    """A path with a leading ~ written out: a shell leaves it alone in --out=~/runs.

    Args:
        option: what names it, for errors.
        kind: "directory" or "file".

    Raises:
        UsageError: it is empty, or the user that it names has no home.
    """
    if str(value) == "":
        raise UsageError(option, "", "is empty", f"give a {kind}, or leave it out")
    # A text alone: a Path has lost one of the two slashes. Other colons are part of a name.
    if isinstance(value, str) and re.match(_ADDRESS, value) and not os.path.lexists(value):
        raise UsageError(option, value, f"is an address, and must be a {kind} on this machine", "give its path")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise UsageError(option, str(value), "names no user's home", "write the path out") from error
