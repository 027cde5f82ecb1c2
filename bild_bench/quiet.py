"""`--quiet`: no remarks and no progress on stderr, in this process and in those that it starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_VARIABLE = "BILD_BENCH_QUIET"


def silence() -> None:
    """From now on; consoles that are made already go on."""
    os.environ[_VARIABLE] = "1"


def stderr_console() -> Console:
    """Where remarks and progress go: stderr, or nowhere."""
    from bild_bench.safe_console import SafeConsole

    return SafeConsole(stderr=True, quiet=os.environ.get(_VARIABLE) == "1")
