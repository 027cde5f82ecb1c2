"""The text in the making: what every method writes to, and what its counters and trace are derived from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from bild_bench.decoding.records import Counters, Decoded, Entry, Limits, generated_tokens


class Handover(StrEnum):
    """Why the large model was called; the value is the counter's name."""

    START = "start_calls"
    FALLBACK = "fallbacks"
    CAP = "cap_handovers"
    TAIL = "tail_checks"


class Transcript:
    """Tokens so far, with the model that generated each and how often each model was called.

    Nothing but appends and integer additions happens here while a text is decoded.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ids = [limits.start_id]
        self._entries: list[Entry] = []
        self._live: list[Entry] = []
        self._untested_from = 1
        self._handovers = dict.fromkeys(Handover, 0)
        self.small_calls = self.large_calls = 0
        self._drafted = self._discarded = self._large_tokens = self._rollbacks = 0

    def __len__(self) -> int:
        """Tokens in the text now, the start token not counted."""
        return len(self._ids) - 1

    @property
    def ended(self) -> bool:
        """The last token is an end token, or the limit is reached."""
        return self._ended_by_token or len(self._ids) > self._limits.max_tokens

    @property
    def untested(self) -> Sequence[int]:
        """Drafts that the large model has not looked at, oldest first."""
        return self._ids[self._untested_from :]

    def unseen(self, length: int) -> Sequence[int]:
        """Tokens, the start token included, that a session of this length has not been fed."""
        return self._ids[length:]

    def hand_over(self, reason: Handover) -> None:
        """Count one call of the large model and its reason."""
        self.large_calls += 1
        self._handovers[reason] += 1

    def draft(self, token: int, max_prob: float | None = None) -> None:
        """The small model's token is put into the text; max_prob is max p_S of that step, where it was read."""
        self._drafted += 1
        self._append(Entry(len(self._ids) - 1, token, "S", max_prob, None))

    def commit(self, token: int, nll: float | None = None) -> None:
        """The large model's own token is put into the text, with -ln p_L of it where it was read."""
        self._large_tokens += 1
        self._append(Entry(len(self._ids) - 1, token, "L", None, nll))
        self._untested_from = len(self._ids)

    def judge(self, nlls: Sequence[float]) -> None:
        """Note -ln p_L of the untested drafts; they are not tested again."""
        for entry, nll in zip(self._live[self._untested_from - 1 :], nlls, strict=True):
            entry.large_nll = nll
        self._untested_from = len(self._ids)

    def roll_back(self, count: int) -> int:
        """Cut the last `count` tokens, all of them drafts; returns the length to truncate sessions to."""
        self._rollbacks += 1
        self._discarded += count
        for entry in self._live[-count:]:
            entry.kept = False
        del self._live[-count:], self._ids[-count:]
        return len(self._ids)

    def finish(self) -> Decoded:
        """The outcome, once the text has ended."""
        tokens = generated_tokens(self._ids, self._limits)
        counters = Counters(
            generated=len(tokens),
            small_calls=self.small_calls,
            large_calls=self.large_calls,
            drafted=self._drafted,
            discarded=self._discarded,
            large_tokens=self._large_tokens,
            rollbacks=self._rollbacks,
            **{reason.value: count for reason, count in self._handovers.items()},
        )
        return Decoded(tokens, counters, not self._ended_by_token, tuple(self._entries))

    @property
    def _ended_by_token(self) -> bool:
        return len(self._ids) > 1 and self._ids[-1] in self._limits.end_ids

    def _append(self, entry: Entry) -> None:
        self._ids.append(entry.token)
        self._entries.append(entry)
        self._live.append(entry)


def nll_of(prob: float) -> float:
    """-ln p in nats; infinite where p has underflowed to zero."""
    return -math.log(prob) if prob > 0 else math.inf
