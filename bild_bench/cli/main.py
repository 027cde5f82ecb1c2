"""The command line's entry: every error ends as one line on stderr and an exit code."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from bild_bench.cli.app import app
from bild_bench.errors import BildBenchError, UsageError

_INTERRUPTED = 130


def main() -> None:
    """Run a command and exit.

    Exit codes: 0; 1 for a failed run, or when nobody reads our output any more; 2 for usage; 3 for data or model
    problems; 130 after Ctrl-C.
    """
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"] or ["--help"]
    try:
        code = app(arguments, prog_name="bild-bench", standalone_mode=False)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        code = _say(*_explain(error))
    # The command-line library turns Ctrl-C into this code without a word.
    if code == _INTERRUPTED:
        _say("stopped; what is finished is kept, and the same command goes on from there", _INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> tuple[str, int]:
    if isinstance(error, BildBenchError):
        return f"error: {error}", error.exit_code
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return f"error: {_usage_problem(error)}", int(error.exit_code)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"error: unexpected {what}; run again with --debug and report it", 1


def _usage_problem(error: Any) -> str:
    """A usage error of the command-line library, whose own class is not public, in our words."""
    context = getattr(error, "ctx", None)
    fix = f"see '{'bild-bench' if context is None else context.command_path} --help'"
    # Its message leaves out a value that could not be converted; the cause, a pydantic error, knows it.
    refused: list[Any] = getattr(error.__cause__, "errors", list)()
    parameter = getattr(error, "param", None)
    if refused and parameter is not None:
        problem = error.message.removeprefix("Value error, ").rstrip(".")
        return str(UsageError(parameter.opts[0], refused[0]["input"], problem, fix))
    return f"{' '.join(error.format_message().split()).rstrip('.')}; {fix}"


def _say(line: str, code: int) -> int:
    print(line, file=sys.stderr)
    return code
