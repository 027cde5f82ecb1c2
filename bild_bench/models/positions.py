"""How long a source and a target may be, where a model has a table of positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Positions:
    """The most tokens of a source and of a target; None where there is no end of them (T5)."""

    source: int | None = None
    target: int | None = None


def within(tokens: int, most: int | None) -> int:
    """A number of tokens, or the most of them where that is less."""
    return tokens if most is None else min(tokens, most)


def positions_of(models: Iterable[Any]) -> Positions:
    """What all these models have positions for."""
    configs = [model.config for model in models]
    return Positions(
        _least(_found(config, "encoder") for config in configs), _least(_found(config, "decoder") for config in configs)
    )


def _found(config: Any, side: str) -> int | None:
    """Most configurations have one number for both sides; LED has two, and some have a configuration for each side."""
    nested = getattr(config, side, None)
    own = getattr(config, f"max_{side}_position_embeddings", getattr(config, "max_position_embeddings", None))
    found: int | None = getattr(nested, "max_position_embeddings", own)
    return found


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
