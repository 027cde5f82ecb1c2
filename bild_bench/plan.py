"""What an experiment consists of: points (a method with its settings), and the identities that resuming rests on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from bild_bench import __version__
from bild_bench.decoding.methods import METHODS, Method, find_method
from bild_bench.decoding.typed import typed
from bild_bench.errors import UsageError
from bild_bench.printable import one_line


@dataclass(frozen=True)
class Point:
    """One method with its settings, decoded over all texts.

    Args:
        method: how.
        settings: an instance of the method's settings class.
        role: "baseline" for what others are compared with, else "point".
        small: the name of the small model where there are several.
    """

    method: Method
    settings: Any
    role: str = "point"
    small: str | None = None

    @property
    def label(self) -> str:
        """As shown in tables, such as "bild fb=0.5 rb=2"."""
        name = f"{self.method.name} {self.settings.label()}".strip()
        return one_line(name if self.small is None else f"{name} small={self.small}")

    @property
    def models(self) -> dict[str, str]:
        """Role -> key of the model that plays it, for the roles that the method uses."""
        small = "small" if self.small is None else f"small:{self.small}"
        return {role: small if role == "small" else role for role in self.method.uses}


def make_point(mode: str, settings: Mapping[str, Any], role: str = "point") -> Point:
    """A point from a mode's name and the settings that were given; the others take their defaults.

    Raises:
        UsageError: no such mode, a setting that does not apply to it, or a value of another type or out of range.
    """
    method = find_method(mode)
    known = {field.name for field in fields(method.settings)}
    for name, value in settings.items():
        if name not in known:
            raise meaningless(name, value, mode)
    return Point(method, method.settings(**typed(method.settings, settings)), role)


def meaningless(setting: str, value: object, modes: str) -> UsageError:
    """The error for a setting that none of the modes knows."""
    able = [method.name for method in METHODS.values() if setting in {field.name for field in fields(method.settings)}]
    return UsageError(
        f"--{setting.replace('_', '-')}",
        value,
        f"does not apply to --mode {modes} (allowed with: {', '.join(able) or 'none'})",
        "leave it out, or choose that mode",
    )


def with_baseline(points: Sequence[Point]) -> list[Point]:
    """The points with vanilla in front, once, as the baseline."""
    return [make_point("vanilla", {}, "baseline"), *(point for point in points if point.method.name != "vanilla")]


def check_sampling(points: Sequence[Point]) -> None:
    """Can all of them draw tokens?

    Raises:
        UsageError: one that cannot.
    """
    for point in points:
        if point.method.opens == "library":
            raise UsageError("--mode", point.method.name, "cannot draw tokens", "leave the sampling options out")


def with_smalls(points: Sequence[Point], smalls: Sequence[str]) -> list[Point]:
    """Every point that uses a small model once for each of several, by their names."""
    spread = []
    for point in points:
        spread += [replace(point, small=name) for name in smalls] if "small" in point.method.uses else [point]
    return spread


def keys_of(points: Sequence[Point]) -> tuple[str, ...]:
    """The models that the points use, the large one first."""
    used = dict.fromkeys(key for point in points for key in point.models.values())
    return tuple(sorted(used, key=lambda key: key != "large"))


def library_keys_of(points: Sequence[Point]) -> tuple[str, ...]:
    """The models that must be loaded as the library's own too, for peers."""
    return keys_of([point for point in points if point.method.opens == "library"])


def point_identity(point: Point, context: Mapping[str, Any]) -> str:
    """16 hex digits over all that can change a point's outcome on a text; the text's own id holds its content.

    Args:
        point: the method and its settings.
        context: JSON values that all points share: limits, dtype, device kind, session kind, prefix, data label, and
            under "models" one fingerprint a key, of which only those that the point uses count.
    """
    shared = dict(context)
    models = shared.pop("models")
    return identity(
        method=point.method.name,
        settings=asdict(point.settings),
        models={role: models[key] for role, key in point.models.items()},
        code=code_version(),
        **shared,
    )


def identity(**parts: Any) -> str:
    """16 hex digits over named JSON values; the same for the same values in any order of names."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


@cache
def code_version() -> str:
    """The version, and a digest of the source files that decide what is decoded and how it is timed."""
    root, digest = Path(__file__).parent, hashlib.sha256()
    for room in ("decoding", "measure", "models"):
        for path in sorted((root / room).glob("*.py")):
            digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
