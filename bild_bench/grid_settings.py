"""From options that take several values to the values of each setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from bild_bench.errors import UsageError
from bild_bench.grid import parse_numbers, parse_words

_NUMBERS = ("alpha_fb", "alpha_rb", "threshold", "replace_below", "assistant_confidence")
_WHOLE = ("max_draft", "exit_layer", "gamma", "min_layer", "assistant_tokens")
_WORDS = ("first", "measure")
_FLAGS = ("verify_tail", "adaptive", "decay")

# What `tune` tries where nothing else is said, by the methods that know them.
USUAL = {"alpha_fb": "0.3:0.9:0.1", "alpha_rb": "1,2,3,5"}


def grid_values(options: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Setting -> the values to try, for the settings that were given.

    Args:
        options: options by name; missing, None or False where they were not given. A value is text as on the command
            line ("0.3:0.9:0.1", "1,2,inf"), or, from Python, a single value or a sequence of values.

    Raises:
        UsageError: values that cannot be read, or an empty sequence.
    """
    values = {}
    for name in (*_NUMBERS, *_WHOLE, *_WORDS, *_FLAGS):
        given = options.get(name)
        if given is not None and given is not False:
            values[name] = _values(name, given)
    return values


def usual_values(modes: Sequence[str], options: Mapping[str, Any]) -> dict[str, list[Any]]:
    """As `grid_values`, with the usual values of settings that were not given and that some mode knows."""
    from bild_bench.decoding.methods import find_method

    known = {field.name for mode in modes for field in fields(find_method(mode).settings)}
    usual = {name: text for name, text in USUAL.items() if name in known and options.get(name) is None}
    return grid_values({**options, **usual})


def _values(name: str, given: Any) -> list[Any]:
    option = f"--{name.replace('_', '-')}"
    if isinstance(given, str) and name in _WORDS:
        return list(parse_words(option, given))
    if isinstance(given, str) and name not in _FLAGS:
        return list(parse_numbers(option, given, name in _WHOLE))
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return [given]
    values = list(given)
    if not values:
        raise UsageError(option, given, "has no values", "give at least one, or leave it out")
    return values
