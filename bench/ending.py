"""How the measuring programs end: what they made on stdout, or one line on stderr and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bild_bench.errors import BildBenchError

_INTERRUPTED = 130


def ended(work: Callable[[], object]) -> int:
    """Run it and print what it returns; the exit code is 0, an error's own, or 130 after Ctrl-C."""
    try:
        found = work()
    except BildBenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped; what is finished is kept", file=sys.stderr)
        return _INTERRUPTED
    print(found)
    return 0
