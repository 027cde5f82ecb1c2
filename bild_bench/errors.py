"""Errors for people: one line that names the field, the value, what is allowed and what to do.

Exit codes: 2 for usage, 3 for data or model problems, 1 for a run that failed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from bild_bench.printable import cut, one_line, shown

# Characters of what is wrong: a list of allowed names fits, a library's whole message need not.
_PROBLEM = 1500


class BildBenchError(Exception):
    """A problem that is reported as one line and never as a traceback.

    Args:
        field: the option, column, file or setting at fault.
        value: what was found there.
        problem: what is wrong with it, or what is allowed instead.
        fix: what the reader can do now.
    """

    exit_code = 1

    def __init__(self, field: str, value: object, problem: str, fix: str) -> None:
        self.field, self.value, self.problem, self.fix = field, value, problem, fix
        # An option without a value was left out; in data, None is what was found.
        found = "not given" if value is None and field.startswith("--") else shown(value)
        super().__init__(one_line(f"{cut(field)}: {found}: {cut(problem, _PROBLEM)}; {fix}"))


class UsageError(BildBenchError):
    """What was asked for is not possible: an option's value, a name, a combination."""

    exit_code = 2


class DataError(BildBenchError):
    """A data set, a checkpoint or a result file cannot be used."""

    exit_code = 3


class RunError(BildBenchError):
    """A run that started and could not go on."""

    exit_code = 1


def unknown_name(field: str, value: object, known: Iterable[str]) -> UsageError:
    """The error for a name that is not in a list, with the nearest known names."""
    names = sorted(known)
    begun = [name for name in names if value and name.startswith(str(value))]
    # A beginning that fits one name alone is meant, however much is missing.
    close = begun if len(begun) == 1 else difflib.get_close_matches(str(value)[:100], names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "choose one of them"
    return UsageError(field, value, f"not known (allowed: {', '.join(names)})", hint)
