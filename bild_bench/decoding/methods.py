"""The decoding methods by name: what each needs, what can be set, and the function that decodes one text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from bild_bench.decoding.alone import AloneSettings, small, vanilla
from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.calm import CalmSettings, calm
from bild_bench.decoding.early_exit import EarlyExitSettings, bild_early_exit
from bild_bench.decoding.oracle import OracleSettings, oracle
from bild_bench.decoding.peers import AssistedSettings, hf_assisted, hf_greedy
from bild_bench.decoding.records import Decoded
from bild_bench.decoding.speculative import SpeculativeSettings, speculative
from bild_bench.errors import unknown_name


def never(settings: Any) -> bool:
    """Claims nothing."""
    return False


def always(settings: Any) -> bool:
    """Claims vanilla's tokens, whatever its settings."""
    return True


@dataclass(frozen=True)
class Method:
    """One way to decode.

    Args:
        name: as on the command line (`--mode`).
        uses: the models it calls, of "large" and "small"; an encoding is needed for each.
        settings: the frozen dataclass of its settings, which has `label()`.
        decode: (sessions, settings, limits, picker) -> outcome of one text.
        lossless: with these settings and greedy search, does it claim vanilla's tokens?
        opens: what it decodes with: a plain session a model, one model layer by layer, one model twice with an early
            exit, or the library's own `generate`.
    """

    name: str
    uses: tuple[str, ...]
    settings: type[Any]
    decode: Callable[..., Decoded]
    lossless: Callable[[Any], bool] = never
    opens: Literal["plain", "layered", "early-exit", "library"] = "plain"


METHODS = {
    method.name: method
    for method in (
        Method("vanilla", ("large",), AloneSettings, vanilla, always),
        Method("small", ("small",), AloneSettings, small),
        Method("bild", ("large", "small"), BildSettings, bild, lambda settings: settings.alpha_fb == 1),
        Method("speculative", ("large", "small"), SpeculativeSettings, speculative, always),
        Method("calm", ("large",), CalmSettings, calm, lambda s: s.threshold >= 1 and not s.decay, "layered"),
        Method(
            "bild-early-exit", ("large",), EarlyExitSettings, bild_early_exit, lambda s: s.alpha_fb == 1, "early-exit"
        ),
        Method("oracle", ("large", "small"), OracleSettings, oracle),
        Method("hf-greedy", ("large",), AloneSettings, hf_greedy, always, "library"),
        Method("hf-assisted", ("large", "small"), AssistedSettings, hf_assisted, always, "library"),
    )
}


def find_method(name: str) -> Method:
    """The method of that name.

    Raises:
        UsageError: there is none; the message says which one may have been meant.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise unknown_name("--mode", name, METHODS)
    return METHODS[name]
