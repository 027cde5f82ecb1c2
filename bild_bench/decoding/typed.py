"""Settings are values that a person wrote: each must be of the type that its field says."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, get_args, get_type_hints

from bild_bench.errors import UsageError


def typed(settings: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as their fields' types: any whole number as int, any real one as float.

    Args:
        settings: a dataclass with fields of bool, int, float and Literal words, each perhaps with None.
        values: field -> value; every one must be a field.

    Raises:
        UsageError: a value of another type; True is no number, and 2.0 is no whole one.
    """
    hints = get_type_hints(settings)
    return {name: _typed(name, value, hints[name]) for name, value in values.items()}


def _typed(name: str, value: Any, hint: Any) -> Any:
    kinds = get_args(hint) or (hint,)
    if value is None and type(None) in kinds:
        return None
    # True is an Integral too, and would count as 1.
    number = not isinstance(value, bool)
    if bool in kinds:
        wanted, right = "True or False", not number
    elif int in kinds:
        wanted, right = "a whole number", number and isinstance(value, Integral)
    elif float in kinds:
        wanted, right = "a number", number and isinstance(value, Real)
    else:
        wanted, right = "a word", isinstance(value, str)
    if not right:
        wanted += " or None" if type(None) in kinds else ""
        found = "is None" if value is None else f"is of type {type(value).__name__}"
        raise UsageError(f"--{name.replace('_', '-')}", value, f"{found} (allowed: {wanted})", f"give {wanted}")
    # NumPy's numbers are right too, but are no JSON.
    return int(value) if int in kinds else float(value) if float in kinds else value
