"""A compiled library in the cache: loaded only where it is ours and whole."""

from __future__ import annotations

import ctypes
import hashlib
import os
from pathlib import Path

from bild_bench.models.cache import is_own
from bild_bench.models.native.library import open_library


def keep(made: Path, target: Path) -> None:
    """Move a library to its place, then its digest: one without the other is not loaded."""
    made.chmod(0o700)
    digest = made.with_suffix(".sha256")
    digest.write_text(hashlib.sha256(made.read_bytes()).hexdigest(), encoding="ascii")
    digest.chmod(0o600)
    made.replace(target)
    digest.replace(target.with_suffix(".sha256"))


def kept_library(path: Path) -> ctypes.CDLL | None:
    """The library; None where it or its digest is not there, is not ours, or they do not agree.

    Raises:
        OSError: it is ours and whole, and cannot be loaded.
        AttributeError: it is another library.
    """
    library, digest = _opened(path), _opened(path.with_suffix(".sha256"))
    try:
        if library is None or digest is None or _digest(library).encode() != os.read(digest, 64):
            return None
        # What was read is what is loaded, whatever stands under its name by now. This descriptor is never closed: the
        # loader knows libraries by their names, and would take a second one of the same number for the first.
        held = Path(f"/proc/self/fd/{os.dup(library)}")
        if not held.exists():
            return open_library(path)
        try:
            return open_library(held)
        except OSError as error:
            raise OSError(str(error).replace(str(held), str(path))) from error
    finally:
        for descriptor in (library, digest):
            if descriptor is not None:
                os.close(descriptor)


def _opened(path: Path) -> int | None:
    """A descriptor of a file that is ours; None where it is not."""
    try:
        # A named pipe would hold up whoever opens it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if is_own(os.fstat(descriptor)):
        return descriptor
    os.close(descriptor)
    return None


def _digest(descriptor: int) -> str:
    with open(descriptor, "rb", closefd=False) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
