"""The command line's entry: every error ends as one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from bild_bench.cli.app import app
from bild_bench.errors import BildBenchError

_INTERRUPTED = 130


def main() -> None:
    """Run a command and exit.

    Exit codes: 0; 1 for a failed run; 2 for usage; 3 for data or model problems; 130 after Ctrl-C.
    """
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        code = app(arguments, prog_name="bild-bench", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = _say("stopped; what is finished is kept, and the same command goes on from there", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); a second failure while Python flushes must not be shown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        code = _say(*_explain(error))
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> tuple[str, int]:
    if isinstance(error, BildBenchError):
        return f"error: {error}", error.exit_code
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        # A usage error of the command-line library, whose own class is not public.
        context = getattr(error, "ctx", None)
        command = "bild-bench" if context is None else context.command_path
        return f"error: {' '.join(error.format_message().split())}; see '{command} --help'", int(error.exit_code)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"error: unexpected {what}; run again with --debug and report it", 1


def _say(line: str, code: int) -> int:
    print(line, file=sys.stderr)
    return code
