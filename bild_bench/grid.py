"""From ranges on a command line to points: the cross product of the settings that each method knows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Any

from bild_bench.decoding.methods import find_method
from bild_bench.errors import UsageError
from bild_bench.plan import Point, make_point, meaningless

_MOST_VALUES = 1000
# Every text is decoded at every point.
MOST_POINTS = 10_000


def parse_numbers(option: str, text: str, whole: bool) -> list[float] | list[int]:
    """Numbers from "0.3:0.9:0.1" (from, to and with the end, step), "3:10" (step 1), or "1,2,3,inf", in that order.

    Args:
        option: for errors.
        text: as given.
        whole: whether only whole numbers make sense.

    Raises:
        UsageError: not numbers, an empty or endless range.
    """
    found: list[Decimal] = []
    for part in text.split(","):
        bounds = [_decimal(option, text, piece) for piece in part.split(":")]
        found += bounds if len(bounds) == 1 else _range(option, text, bounds)
    if whole and any(not number.is_finite() or number != int(number) for number in found):
        raise UsageError(option, text, "must be whole numbers (allowed: 3, 1,2,5 or 3:10)", "leave the fractions out")
    unique = list(dict.fromkeys(found))
    return [int(number) for number in unique] if whole else [float(number) for number in unique]


def parse_words(option: str, text: str) -> list[str]:
    """Words from "a,b,c".

    Raises:
        UsageError: one of them is empty.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(option, text, "has an empty name in it (allowed: a,b,c)", "take the comma out")
    return list(dict.fromkeys(words))


def expand(modes: Sequence[str], values: Mapping[str, Sequence[Any]]) -> list[Point]:
    """The points of all modes: for each, every combination of the values of its own settings.

    Args:
        modes: the methods' names.
        values: setting -> values to try; a setting that a method does not know is left out for it.

    Raises:
        UsageError: a setting that none of the modes knows, no such mode, a value out of range, or too many points.
    """
    known = {mode: [field.name for field in fields(find_method(mode).settings)] for mode in modes}
    for name, tried in values.items():
        if not any(name in names for names in known.values()):
            raise meaningless(name, tried[0] if len(tried) == 1 else list(tried), ",".join(modes))
    owned = {mode: {name: values[name] for name in names if name in values} for mode, names in known.items()}
    _check_number(owned)
    points = []
    for mode, own in owned.items():
        for combination in itertools.product(*own.values()):
            points.append(make_point(mode, dict(zip(own, combination, strict=True))))
    return list(dict.fromkeys(points))


def _check_number(owned: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
    """Counted before any point is made: a few ranges multiply to more than a machine can hold."""
    count = sum(math.prod(map(len, own.values())) for own in owned.values())
    if count > MOST_POINTS:
        most = max(owned.values(), key=lambda own: math.prod(map(len, own.values())))
        factors = " x ".join(f"{len(tried):,} of --{name.replace('_', '-')}" for name, tried in most.items())
        problem = f"too many points from {factors} (allowed: at most {MOST_POINTS:,})"
        raise UsageError("points", count, problem, "widen a step, or try fewer values")


def parse_duration(option: str, text: str) -> float:
    """Seconds from "90s", "20m", "1.5h", or a bare number of minutes.

    Raises:
        UsageError: not a duration above zero.
    """
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 60)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = math.nan
    if not (seconds > 0 and math.isfinite(seconds)):
        raise UsageError(option, text, "must be a duration (allowed: 90s, 20m, 1.5h)", "try 20m")
    return seconds


def _decimal(option: str, text: str, piece: str) -> Decimal:
    try:
        number = Decimal(piece.strip())
    except InvalidOperation:
        number = Decimal("nan")
    # A float beyond its range would become inf in silence.
    if number.is_nan() or (number.is_finite() and not math.isfinite(float(number))):
        raise UsageError(
            option, text, f"{piece!r} is not a usable number (allowed: 0.5, 1,2,5 or 0.3:0.9:0.1)", "correct it"
        )
    return number


def _range(option: str, text: str, bounds: list[Decimal]) -> list[Decimal]:
    # Decimal: in floats 0.3:0.9:0.1 would end at 0.8999999999999999 or miss its end.
    start, stop, step = (*bounds, Decimal(1))[:3]
    if len(bounds) > 3 or not all(bound.is_finite() for bound in bounds) or float(step) <= 0 or stop < start:
        problem = "is not a range (allowed: from:to or from:to:step with a step above 0 and to not below from)"
        raise UsageError(option, text, problem, "try 0.3:0.9:0.1")
    steps = (stop - start) / step
    if steps >= _MOST_VALUES:
        raise UsageError(option, text, f"has more values than {_MOST_VALUES}", "widen the step")
    return [start + step * number for number in range(int(steps) + 1)]
