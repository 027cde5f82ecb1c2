"""The cache folder, and folders in it that nobody else can put anything into."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_NAME = "BILD_BENCH_CACHE"


class NotOwnError(OSError):
    """A folder of the cache can be changed by somebody else."""


def cache_folder() -> Path:
    """Where compiled and converted things are kept: $BILD_BENCH_CACHE, or ~/.cache/bild-bench.

    Raises:
        NotOwnError: there is neither the variable nor a home folder.
    """
    named = os.environ.get(_NAME)
    if named:
        return Path(named)
    try:
        return Path.home() / ".cache" / "bild-bench"
    except RuntimeError as error:
        raise NotOwnError(f"no home folder is known, and {_NAME} is not set") from error


def own_folder(name: str) -> Path:
    """A folder of the cache that this user owns and nobody else may enter; made where it is absent.

    The cache itself may be everybody's. Where another user has taken the name, one with this user's number is used.

    Raises:
        NotOwnError: that one too is a link, no folder, or somebody else's.
        OSError: it cannot be made.
    """
    cache, user = cache_folder(), os.geteuid()
    cache.mkdir(parents=True, exist_ok=True)
    for folder in (cache / name, cache / f"{name}-{user}"):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == user:
            if stat.S_IMODE(found.st_mode) != 0o700:
                folder.chmod(0o700)
            return folder
    raise NotOwnError(f"{folder} is a link or somebody else's: remove it, or set {_NAME} to a folder of your own")


def is_own(found: os.stat_result) -> bool:
    """Whether a file or folder is this user's, is no link, and nobody else may change it."""
    plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return plain and found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
