"""How a token is chosen from a row: greedily, or drawn. The same for all points of an experiment, baseline included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from bild_bench.decoding.session import Rows
from bild_bench.decoding.typed import typed
from bild_bench.errors import UsageError


@dataclass(frozen=True)
class Sampling:
    """Draw tokens instead of taking the most probable one.

    Args:
        temperature: the logits are divided by it (> 0); 1 leaves them.
        top_k: only the k most probable tokens may be drawn; None for all.
        top_p: only the smallest set of tokens whose probability reaches this may be drawn (nucleus sampling, Holtzman
            et al. 2020), in (0, 1]; None for all. The BiLD paper uses 0.8.

    Raises:
        UsageError: a value of another type or out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        typed(Sampling, asdict(self))
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise UsageError(
                "--temperature",
                self.temperature,
                "must be a number above 0",
                "leave sampling options out for greedy search",
            )
        if self.top_k is not None and self.top_k < 1:
            raise UsageError("--top-k", self.top_k, "must be 1 or more", "leave it out for all tokens")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError("--top-p", self.top_p, "must be above 0 and at most 1", "try 0.8, or leave it out")


@dataclass(frozen=True)
class Verdict:
    """How many drafts of a window are kept, and the large model's token after them (None: the window ended there)."""

    kept: int
    token: int | None


class Picker(Protocol):
    """Chooses tokens; one for each text and draw, so that a draw depends on nothing else that was decoded."""

    def pick(self, rows: Rows, row: int = -1) -> int:
        """A token from one of the rows."""
        ...

    def propose(self, row: Rows) -> tuple[int, Any]:
        """A draft from a single row, and what `judge` needs to know of the distribution it was drawn from."""
        ...

    def judge(self, drafts: Sequence[int], proposals: Sequence[Any], rows: Rows) -> Verdict:
        """Which drafts the large model keeps, by the rule that leaves its own distribution unchanged.

        Args:
            drafts: n tokens of the small model.
            proposals: what `propose` returned with each.
            rows: the large model's n rows for them, and one more if a token is wanted after the last.
        """
        ...


class Greedy:
    """The most probable token; a draft is kept while it is the large model's own choice."""

    def pick(self, rows: Rows, row: int = -1) -> int:
        return rows.argmax()[row]

    def propose(self, row: Rows) -> tuple[int, None]:
        return row.argmax()[0], None

    def judge(self, drafts: Sequence[int], proposals: Sequence[Any], rows: Rows) -> Verdict:
        chosen = rows.argmax()
        kept = next((n for n, draft in enumerate(drafts) if draft != chosen[n]), len(drafts))
        return Verdict(kept, chosen[kept] if kept < len(chosen) else None)
