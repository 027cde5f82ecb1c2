"""What the large model corrects: where it cuts the small model's text, and what it generates instead.

Read off the traces alone, which hold every token ever put into a text, in that order: drafts that were cut are
followed by the large model's token at the place of the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

QUARTERS = 4


@dataclass(frozen=True)
class Pair:
    """A draft that was cut, the token that took its place, and how often. Without pieces, token ids as "#17"."""

    draft: str
    replacement: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """Sums over a point's texts.

    texts: with a trace. tokens: in the final texts, by quarter of their own text. rollbacks: cuts, by the quarter of
    the first token cut. handovers: tokens that the large model generated without a cut, likewise.
    word_starts, continuations: first tokens cut that begin a word, or go on with one (a full stop after a word goes on
    with it); None without pieces. pairs: the most frequent first, ties in the order of first occurrence. single_pairs:
    how many of all pairs occur once.
    discarded: drafts cut. drafted_twice: of these, those that the small model put at the same place again later on.
    """

    texts: int
    tokens: tuple[int, ...]
    rollbacks: tuple[int, ...]
    handovers: tuple[int, ...]
    word_starts: int | None
    continuations: int | None
    pairs: tuple[Pair, ...]
    single_pairs: int
    discarded: int
    drafted_twice: int


def corrections(samples: pd.DataFrame, *, most: int = 12) -> Corrections | None:
    """What the large model corrected in one point's texts.

    Args:
        samples: rows of one point, as `schema.sample_frame` makes them; with a column "pieces" (each trace's token
            texts, in the trace's order) tokens are named by their text.
        most: pairs at most.

    Returns:
        None where no row has both a draft of the small model and a token of the large one.
    """
    counts = _Counts()
    for row in samples.to_dict("records"):
        if row["status"] == "ok" and row["trace"] is not None:
            counts.add(list(row["trace"]), pieces_of(row))
    return counts.total(most) if {"S", "L"} <= counts.authors else None


def pieces_of(row: Mapping[Any, Any]) -> list[str] | None:
    """The token texts that go with a row's trace, one for one; None where they are not stored."""
    pieces = row.get("pieces")
    if pieces is None or isinstance(pieces, float) or row["trace"] is None or len(pieces) != len(row["trace"]):
        return None
    return [str(piece) for piece in pieces]


class _Counts:
    """Sums in the making."""

    def __init__(self) -> None:
        self.authors: set[str] = set()
        self.texts = self.discarded = self.twice = 0
        self.tokens, self.rollbacks, self.handovers = ([0] * QUARTERS for _ in range(3))
        self.starts, self.named = [0, 0], True
        self.pairs: Counter[tuple[str, str]] = Counter()

    def add(self, trace: Sequence[Mapping[str, Any]], pieces: Sequence[str] | None) -> None:
        """One text: every step with its place, then each cut with what replaced it."""
        names = [f"#{step['token']}" for step in trace] if pieces is None else pieces
        length = 1 + max((step["position"] for step in trace if step["kept"]), default=0)
        self.named = self.named and pieces is not None
        self.texts += 1
        self.authors.update(step["author"] for step in trace)
        first_cut: int | None = None
        for index, step in enumerate(trace):
            quarter = min(QUARTERS - 1, QUARTERS * step["position"] // length)
            if not step["kept"]:
                if first_cut is None:
                    first_cut = index
                    self.rollbacks[quarter] += 1
                    self.starts[names[index][:1].isspace() or step["position"] == 0] += 1
                continue
            self.tokens[quarter] += 1
            if first_cut is not None and step["position"] == trace[first_cut]["position"]:
                self.pairs[names[first_cut], names[index]] += 1
            elif step["author"] == "L":
                self.handovers[quarter] += 1
            first_cut = None
        self._count_waste(trace)

    def _count_waste(self, trace: Iterable[Mapping[str, Any]]) -> None:
        """Drafts that were cut, and those of them that were drafted again: right, and yet their time was lost."""
        open_drafts: Counter[tuple[int, int]] = Counter()
        for step in trace:
            place = (step["position"], step["token"])
            if step["author"] == "S" and open_drafts[place]:
                open_drafts[place] -= 1
                self.twice += 1
            if not step["kept"]:
                self.discarded += 1
                open_drafts[place] += 1

    def total(self, most: int) -> Corrections:
        return Corrections(
            texts=self.texts,
            tokens=tuple(self.tokens),
            rollbacks=tuple(self.rollbacks),
            handovers=tuple(self.handovers),
            word_starts=self.starts[1] if self.named else None,
            continuations=self.starts[0] if self.named else None,
            pairs=tuple(Pair(*names, count) for names, count in self.pairs.most_common(most)),
            single_pairs=sum(count == 1 for count in self.pairs.values()),
            discarded=self.discarded,
            drafted_twice=self.twice,
        )
