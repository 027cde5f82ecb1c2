"""Files that are written whole or not at all, and names that any text may become."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# File systems take 255 bytes; a time, a number or an ending may come beside.
_LONGEST = 120


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place beside a file, to be written to; what stands there at the end becomes the file, in one step.

    The place is new and no link, whatever lay there: what a killed writer left, or what somebody planted. After a
    failure nothing of it stays. The file's permissions are those that the process gives to new files, also where a
    library narrows them.

    Raises:
        OSError: as the system says it; see `parquet.writing`.
    """
    part = path.with_name(path.name + ".part")
    # A folder there is somebody's own, and the system's error names it.
    if os.path.lexists(part):
        part.unlink()
    handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    mode = os.fstat(handle).st_mode & 0o777
    os.close(handle)
    try:
        yield part
        part.chmod(mode)
        _sync(part)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """`whole_file` for content that is there already."""
    with whole_file(path) as part:
        part.write_bytes(content)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """`whole_file` for a folder that is not there yet."""
    part = path.with_name(path.name + ".part")
    _remove(part)
    part.mkdir()
    try:
        yield part
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            _remove(part)
        raise


def _remove(part: Path) -> None:
    if part.is_symlink() or part.is_file():
        part.unlink()
    elif part.exists():
        shutil.rmtree(part)


def file_name(text: str) -> str:
    """A text as the name of one file or folder: no separator, no hidden file, not too long for a file system.

    A longer text is cut, and a digest of all of it added, so that two of them stay apart.
    """
    plain = re.sub(r"[^\w.+@=-]+", "-", text).lstrip(".-") or "unnamed"
    if len(plain.encode(errors="replace")) <= _LONGEST:
        return plain
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{plain.encode()[: _LONGEST - 9].decode(errors='ignore')}-{digest}"


def _sync(path: Path) -> None:
    # A rename is only safe from a power cut once file and directory are written; Windows has no such call for one.
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
