"""Lines of text files, compressed or not, and the words for what is wrong in them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bild_bench.data_forms import COMPRESSIONS

_BUFFER = 2**18


class Fault(Exception):
    """What is wrong in a file, in words that name the line, and what to do."""

    def __init__(self, problem: str, fix: str = "correct the file") -> None:
        super().__init__(problem)
        self.fix = fix


@contextmanager
def opened(file: Path) -> Iterator[Iterator[str]]:
    """Its lines with their ends, unpacked where the name says that they are packed; `Fault` where one is not UTF-8."""
    import pyarrow

    packed = file.suffix.lower() in COMPRESSIONS
    with pyarrow.input_stream(str(file), compression="detect" if packed else None) as stream:
        yield _lines(io.BufferedReader(stream, _BUFFER))


def _lines(stream: Any) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            if number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise Fault("is UTF-16 text", "save it as UTF-8") from error
            raise Fault(f"line {number} is not UTF-8 text") from error
