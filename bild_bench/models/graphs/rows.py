"""Rows of scores that a step left on the device; what greedy search and BiLD ask comes with one transfer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bild_bench.models.graphs.step import BEST, BEST_LOGPROB, NEXT_LOGPROB
from bild_bench.models.rows import TensorRows, checked_ids


class Block:
    """What a session's `extend` left: scores on the device, read when they are first asked for.

    Args:
        tokens: the ids that were fed.
        read: the step's scores, [n, 3] (see `step.Buffers.scores`); called once.
        logits: [n, vocabulary], still on the device.
        current: whether no later step has written over them.
    """

    def __init__(
        self,
        tokens: Sequence[int],
        read: Callable[[], list[list[float]]],
        logits: Callable[[], Tensor],
        current: Callable[[], bool],
    ) -> None:
        self.tokens = tokens
        self._read, self._logits, self._current = read, logits, current
        self._scores: list[list[float]] | None = None

    def scores(self) -> list[list[float]]:
        if self._scores is None:
            self._require_current()
            self._scores = self._read()
        return self._scores

    def logits(self) -> Tensor:
        self._require_current()
        return self._logits()

    def _require_current(self) -> None:
        if not self._current():
            # A caller's mistake and no user's: answering with another step's scores would be worse.
            raise RuntimeError("these rows were not read before the session's next step, which wrote over them")


@dataclass(frozen=True)
class GraphRows:
    """Some rows of a block; see `decoding.session.Rows`. They must be read before their session's next step.

    Raises:
        RunError: at a reading, when a row's best score is not a finite number.
    """

    block: Block
    rows: range

    def __len__(self) -> int:
        return len(self.rows)

    def last(self) -> GraphRows:
        """The last row alone; all were projected in one step."""
        return GraphRows(self.block, self.rows[-1:])

    @property
    def logits(self) -> Tensor:
        """Shape [n, vocabulary], float32 or wider; a copy, which stays."""
        return self._logits().clone()

    def argmax(self) -> list[int]:
        scores = self._scores()
        return checked_ids([row[BEST_LOGPROB] for row in scores], [row[BEST] for row in scores])

    def max_prob(self) -> list[float]:
        self.argmax()
        return [math.exp(row[BEST_LOGPROB]) for row in self._scores()]

    def logprob(self, tokens: Sequence[int], first: int = 0) -> list[float]:
        self.argmax()
        asked = self.rows[first : first + len(tokens)]
        found = [self._read_already(row, token) for row, token in zip(asked, tokens, strict=True)]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else TensorRows(self._logits()).logprob(tokens, first)

    @torch.inference_mode()
    def probs(self) -> Tensor:
        return torch.softmax(self._logits(), dim=-1)

    def top_two(self) -> list[tuple[float, float]]:
        return TensorRows(self._logits()).top_two()

    def _read_already(self, row: int, token: int) -> float | None:
        """ln p of a token that the step looked at: the best one, and the one that was fed next."""
        scores, after = self.block.scores()[row], row + 1
        if token == int(scores[BEST]):
            return scores[BEST_LOGPROB]
        if after < len(self.block.tokens) and token == self.block.tokens[after]:
            return scores[NEXT_LOGPROB]
        return None

    def _scores(self) -> list[list[float]]:
        return [self.block.scores()[row] for row in self.rows]

    def _logits(self) -> Tensor:
        return self.block.logits()[self.rows.start : self.rows.stop]
