"""The decoding methods by name: what each needs, what can be set, and the function that decodes one text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bild_bench.decoding.alone import AloneSettings, small, vanilla
from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.records import Decoded
from bild_bench.errors import unknown_name


@dataclass(frozen=True)
class Method:
    """One way to decode.

    Args:
        name: as on the command line (`--mode`).
        uses: the models it calls, of "large" and "small"; an encoding is needed for each.
        settings: the frozen dataclass of its settings, which has `label()`.
        decode: (sessions, settings, limits) -> outcome of one text.
    """

    name: str
    uses: tuple[str, ...]
    settings: type[Any]
    decode: Callable[..., Decoded]


METHODS = {
    method.name: method
    for method in (
        Method("vanilla", ("large",), AloneSettings, vanilla),
        Method("small", ("small",), AloneSettings, small),
        Method("bild", ("large", "small"), BildSettings, bild),
    )
}


def find_method(name: str) -> Method:
    """The method of that name.

    Raises:
        UsageError: there is none; the message says which one may have been meant.
    """
    if name not in METHODS:
        raise unknown_name("--mode", name, METHODS)
    return METHODS[name]
