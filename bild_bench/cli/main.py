"""The command line's entry: every error ends as one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from bild_bench.cli.app import app
from bild_bench.errors import BildBenchError, UsageError
from bild_bench.printable import visible
from bild_bench.quiet import silence

_INTERRUPTED = 130
# Options of no command but of all, wherever they stand.
_EVERYWHERE = ("--debug", "--quiet")


def main() -> None:
    """Run a command and exit.

    Exit codes: 0; 1 for a failed run, or when our output cannot be written or nobody reads it any more; 2 for usage;
    3 for data or model problems; 130 after Ctrl-C.
    """
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if "--quiet" in arguments:
        silence()
    arguments = [argument for argument in arguments if argument not in _EVERYWHERE] or ["--help"]
    try:
        _require_text(arguments)
        code = app(arguments, prog_name="bild-bench", standalone_mode=False)
        # Here rather than at the interpreter's end, which would tell of a failure in several lines.
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except SystemExit:
        raise
    # Not only Exception: a panic in a library's Rust code is none.
    except BaseException as error:
        if debug:
            traceback.print_exc()
        code = _say(*_explain(error))
    # The command-line library turns Ctrl-C into this code without a word.
    if code == _INTERRUPTED:
        _say("stopped; what is finished is kept; the same command resumes", _INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _require_text(arguments: list[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            problem = "is not UTF-8 text"
            raise UsageError("argument", argument, problem, "write it in UTF-8, or rename the file") from None


def _stdout_refuses() -> bool:
    """Whether it takes no more; asked by an empty line, since a failed write may have dropped what was waiting."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def _explain(error: BaseException) -> tuple[str, int]:
    if isinstance(error, BildBenchError):
        return f"error: {error}", error.exit_code
    if isinstance(error, OSError) and error.filename is None and _stdout_refuses():
        # Else the interpreter would try once more at its end.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return f"error: stdout cannot be written ({error.strerror}); free some space, or write elsewhere", 1
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return f"error: {_usage_problem(error)}", int(error.exit_code)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"error: unexpected {what}; run again with --debug and report it", 1


def _usage_problem(error: Any) -> str:
    """A usage error of the command-line library, whose own class is not public, in our words."""
    context = getattr(error, "ctx", None)
    command = "bild-bench" if context is None else context.command_path
    fix = f"see '{command} --help'"
    # Its message leaves out a value that could not be converted; the cause, a pydantic error, knows it.
    refused: list[Any] = getattr(error.__cause__, "errors", list)()
    parameter = getattr(error, "param", None)
    if refused and parameter is not None:
        value, problem = refused[0]["input"], error.message.removeprefix("Value error, ").rstrip(".")
        if isinstance(value, str) and _several(value) and _is_setting(parameter.name):
            option = parameter.opts[0]
            problem = f"is a range or a list, and '{command}' takes one value"
            fix = f"use bild-bench sweep … {option} {value}, or give one value"
        return str(UsageError(parameter.opts[0], value, problem, fix))
    return f"{' '.join(error.format_message().split()).rstrip('.')}; {fix}"


def _several(value: str) -> bool:
    from bild_bench.grid import parse_numbers

    try:
        return any(sign in value for sign in ",:") and len(parse_numbers("", value, whole=False)) > 0
    except UsageError:
        return False


def _is_setting(name: str | None) -> bool:
    """Whether it is a method's setting, which `sweep` takes several values of."""
    from dataclasses import fields

    from bild_bench.decoding.methods import METHODS

    return any(field.name == name for method in METHODS.values() for field in fields(method.settings))


def _say(line: str, code: int) -> int:
    print(visible(line), file=sys.stderr)
    return code
