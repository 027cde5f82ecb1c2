"""From options by name to a request and its points: one reading for the command line and for Python.

Options are those of the commands, with underscores; what is missing takes the command's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bild_bench.errors import UsageError, unknown_name
from bild_bench.grid import expand, parse_duration, parse_numbers, parse_words
from bild_bench.grid_settings import grid_values, usual_values
from bild_bench.held_out import Texts
from bild_bench.models.choice import names_of
from bild_bench.plan import Point, with_baseline, with_smalls
from bild_bench.settings import method_settings, sampling_of
from bild_bench.setup import Request

_REQUEST = frozenset(field.name for field in fields(Request))
_SAMPLING = frozenset({"sample", "temperature", "top_k", "top_p"})
_STAND_INS = frozenset({"no_rollback", "no_fallback", "stride", "compat"})
_OWN_TEXTS = frozenset({"validation_data", "test_data", "validation_split", "test_split", "limit", "test_limit"})


@dataclass(frozen=True)
class Tuning:
    """What `tune` is asked for; see `tuning.tune`."""

    request: Request
    points: list[Point]
    max_drops: list[float]
    validation: Texts
    test: Texts


def asked_run(options: Mapping[str, Any]) -> tuple[Request, list[Point]]:
    """One point for each mode, with the baseline unless `baseline` is False.

    Raises:
        UsageError: no such mode, a setting that does not apply to it, or a value that cannot be.
    """
    values = {name: [value] for name, value in method_settings(options).items()}
    points = expand(_modes(options), values)
    return _request(options), with_baseline(points) if options.get("baseline", True) else points


def asked_sweep(options: Mapping[str, Any]) -> tuple[Request, list[Point]]:
    """Every combination of the settings' values for every mode and small model, and the baseline.

    Raises:
        UsageError: as `asked_run`, and values or a time budget that cannot be read.
    """
    points = expand(_modes(options), grid_values(options))
    smalls = _smalls(options.get("small"))
    given = {**options, "small": smalls[0] if len(smalls) == 1 else None}
    if len(smalls) > 1:
        points = with_smalls(points, names_of(smalls))
        given["smalls"] = smalls
    return _request(given), with_baseline(points)


def asked_tune(options: Mapping[str, Any]) -> Tuning:
    """The points to choose from, the drops, and the texts of both sides.

    Raises:
        UsageError: as `asked_sweep`.
    """
    modes = _modes(options)
    data = options.get("data")
    sides = [
        Texts(
            _text(data if options.get(f"{side}_data") is None else options[f"{side}_data"]),
            options.get(f"{side}_split", side),
            options.get(limit),
        )
        for side, limit in (("validation", "limit"), ("test", "test_limit"))
    ]
    own = {name: value for name, value in options.items() if name not in ("data", "split", "limit")}
    drops = drops_of(options.get("max_drop"))
    return Tuning(_request(own), expand(modes, usual_values(modes, options)), drops, *sides)


def drops_of(given: Any) -> list[float]:
    """Points of quality that may be lost, each once, in the order given; 0 and 1 where nothing is given.

    Args:
        given: text such as "0,1" as on the command line, a number, or several of either.

    Raises:
        UsageError: not a number of 0 or more.
    """
    drops: list[float] = []
    for value in _several("0,1" if given is None else given):
        found = parse_numbers("--max-drop", value, whole=False) if isinstance(value, str) else [value]
        for drop in found:
            if isinstance(drop, bool) or not isinstance(drop, int | float) or not 0 <= drop < float("inf"):
                raise UsageError("--max-drop", drop, "must be 0 or more points of quality", "try 0,1")
            drops.append(float(drop))
    return list(dict.fromkeys(drops))


def check_names(command: str, given: Iterable[str]) -> None:
    """Are these options of the command? For Python, where nothing else refuses them.

    Args:
        command: "run", "sweep" or "tune".

    Raises:
        UsageError: one is not; the message names the nearest.
    """
    from bild_bench.decoding.methods import METHODS

    settings = {field.name for method in METHODS.values() for field in fields(method.settings)}
    own = {"run": _STAND_INS | _SAMPLING, "sweep": _SAMPLING, "tune": _OWN_TEXTS}[command]
    known = ((_REQUEST - {"task"}) | settings | own) - ({"split"} if command == "tune" else set())
    for name in given:
        if name not in known:
            raise unknown_name(command, name, known)


def _modes(options: Mapping[str, Any]) -> list[str]:
    mode = options.get("mode", "bild")
    if not isinstance(mode, str):
        raise UsageError("mode", mode, "must be a method's name; several are one text, as 'bild,small'", "give a text")
    return parse_words("--mode", mode)


def _request(options: Mapping[str, Any]) -> Request:
    asked = {name: value for name, value in options.items() if name in _REQUEST}
    if isinstance(asked.get("budget"), str):
        asked["budget"] = parse_duration("--budget", asked["budget"])
    return Request(**(asked | {"sampling": sampling_of(options)}))


def _smalls(given: Any) -> tuple[Any, ...]:
    """One small model or several; text may name several, with commas between."""
    if given is None or isinstance(given, Path):
        return (given,)
    smalls = parse_words("--small", given) if isinstance(given, str) else _several(given)
    if not smalls:
        raise UsageError("--small", given, "names no model", "leave it out for the pair's own")
    return tuple(smalls)


def _several(given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def _text(data: Any) -> str | None:
    return None if data is None else str(data)
