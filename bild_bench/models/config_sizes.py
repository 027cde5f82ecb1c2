"""Sizes in a config.json that no checkpoint of its weights can have.

The library builds every layer and every table that a configuration asks for before it looks at a weight: a number with
some digits too many would take all memory, or hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_LAYERS = re.compile(r"layers$")
_TABLES = re.compile(r"^d_\w+$|(vocab_size|hidden_size|intermediate_size|ffn_dim|heads|buckets|experts|embeddings)$")
# Published models have at most some hundred layers, and some tens of thousand positions, which may be computed.
_MOST_LAYERS, _LEAST_BOUND = 1000, 1_000_000


def wrong_size(config: Mapping[str, Any], weight_bytes: int) -> str | None:
    """The first size that cannot be, in words; None where all can.

    Args:
        config: as config.json says; a configuration inside it (encoder, decoder) is looked at too.
        weight_bytes: of the checkpoint's weight files: a width has at least one weight of a byte.
    """
    for name, value in _numbers(config):
        for kind, most in ((_LAYERS, _MOST_LAYERS), (_TABLES, max(weight_bytes, _LEAST_BOUND))):
            if kind.search(name) and value > most:
                told = f"{value:,}" if value < 10**30 else "a number of more than 30 digits"
                return f"its config.json asks for {name} {told} (allowed with these weights: at most {most:,})"
    return None


def _numbers(config: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, int]]:
    for name, value in config.items():
        if isinstance(value, Mapping) and depth < 2:
            yield from _numbers(value, depth + 1)
        elif isinstance(value, int):
            yield str(name), value
