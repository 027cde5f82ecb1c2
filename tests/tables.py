"""Models made of tables: next-token distributions written down or drawn from a seed, with the session interface."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from bild_bench.decoding.records import Limits
from bild_bench.decoding.session import Sessions

START, END = 0, 1
Table = Callable[[tuple[int, ...]], list[float]]


class TableRows:
    """Rows of written-down probabilities."""

    def __init__(self, rows: list[list[float]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def last(self) -> TableRows:
        return TableRows(self._rows[-1:])

    def argmax(self) -> list[int]:
        return [max(range(len(row)), key=row.__getitem__) for row in self._rows]

    def max_prob(self) -> list[float]:
        return [max(row) for row in self._rows]

    def logprob(self, tokens: Sequence[int], first: int = 0) -> list[float]:
        return [math.log(row[token]) for row, token in zip(self._rows[first:], tokens, strict=False)]

    def probs(self) -> torch.Tensor:
        return torch.tensor(self._rows, dtype=torch.float64)

    def top_two(self) -> list[tuple[float, float]]:
        return [(first, second) for first, second, *_ in (sorted(row, reverse=True) for row in self._rows)]


@dataclass
class TableSession:
    """A session over a table; it also keeps the sizes of its passes, to show how often a model was called."""

    table: Table
    fed: list[int] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        return len(self.fed)

    def extend(self, tokens: Sequence[int]) -> TableRows:
        assert tokens, "a pass feeds one token at least"
        before = len(self.fed)
        self.fed += tokens
        self.passes.append(len(tokens))
        return TableRows([self.table(tuple(self.fed[: before + n + 1])) for n in range(len(tokens))])

    def truncate(self, length: int) -> None:
        del self.fed[length:]


def written(rows: dict[tuple[int, ...], dict[int, float]], size: int = 8) -> Table:
    """Distributions by the tokens after the start; what is left of 1 is spread over the other tokens."""

    def table(prefix: tuple[int, ...]) -> list[float]:
        given = rows[prefix[1:]]
        rest = (1 - sum(given.values())) / (size - len(given))
        return [given.get(token, rest) for token in range(size)]

    return table


def random_table(seed: int, size: int = 6, sharpness: float = 2.0) -> Table:
    """A distribution drawn from the seed and the prefix alone."""

    def table(prefix: tuple[int, ...]) -> list[float]:
        draw = random.Random(f"{seed}/{prefix}")
        weights = [math.exp(draw.gauss(0, sharpness)) for _ in range(size)]
        return [weight / sum(weights) for weight in weights]

    return table


def sessions(small: Table | None = None, large: Table | None = None) -> Sessions:
    """Fresh sessions over tables."""
    return Sessions(
        large=None if large is None else TableSession(large), small=None if small is None else TableSession(small)
    )


def limits(max_tokens: int, *ends: int) -> Limits:
    """Limits with the tables' start token; END ends a text unless other end tokens are given."""
    return Limits(max_tokens, START, frozenset(ends if ends else (END,)))
