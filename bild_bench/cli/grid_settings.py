"""From options that take several values to the values of each setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bild_bench.grid import parse_numbers, parse_words

_NUMBERS = ("alpha_fb", "alpha_rb", "threshold", "replace_below", "assistant_confidence")
_WHOLE = ("max_draft", "exit_layer", "gamma", "min_layer", "assistant_tokens")
_WORDS = ("first", "measure")
_FLAGS = ("verify_tail", "adaptive", "decay")


def grid_values(options: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Setting -> the values to try, for the settings that were given.

    Args:
        options: every option of the command by name; None or False where it was not given.

    Raises:
        UsageError: values that cannot be read.
    """
    values: dict[str, list[Any]] = {}
    for name in (*_NUMBERS, *_WHOLE):
        if options[name] is not None:
            values[name] = list(parse_numbers(_option(name), options[name], name in _WHOLE))
    values |= {name: parse_words(_option(name), options[name]) for name in _WORDS if options[name] is not None}
    return values | {name: [True] for name in _FLAGS if options[name]}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
