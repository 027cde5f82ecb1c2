"""Rows of next-token scores whose projection, best ids and probabilities come from one native call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bild_bench.models.rows import TensorRows, checked_ids

# States [n, d_model] -> logits [n, vocabulary], best ids and their log probabilities.
Score = Callable[[Tensor], tuple[Tensor, list[int], list[float]]]


class NativeRows:
    """Scores of n positions; see `decoding.session.Rows`. They are computed at the first reading, all at once.

    Raises:
        RunError: at a reading, when a row's best score is not a finite number.
    """

    def __init__(self, states: Tensor, score: Score) -> None:
        self._states, self._score = states, score
        self._read: tuple[Tensor, list[int], list[float]] | None = None

    def __len__(self) -> int:
        return self._states.shape[0]

    def _reading(self) -> tuple[Tensor, list[int], list[float]]:
        if self._read is None:
            self._read = self._score(self._states)
        return self._read

    @property
    def logits(self) -> Tensor:
        """Shape [n, vocabulary], float32."""
        return self._reading()[0]

    def last(self) -> NativeRows:
        """The last row alone; the others are never projected."""
        return self if len(self) == 1 else NativeRows(self._states[-1:], self._score)

    def argmax(self) -> list[int]:
        _, ids, logprobs = self._reading()
        return checked_ids(logprobs, ids)

    def max_prob(self) -> list[float]:
        _, ids, logprobs = self._reading()
        checked_ids(logprobs, ids)
        return [math.exp(value) for value in logprobs]

    def logprob(self, tokens: Sequence[int], first: int = 0) -> list[float]:
        logits, ids, logprobs = self._reading()
        checked_ids(logprobs, ids)
        scores, found = logits.numpy(), []
        for row, token in enumerate(tokens, first):
            # The best score's log probability is what was normalised; any other is that much below it.
            found.append(logprobs[row] + float(scores[row, token]) - float(scores[row, ids[row]]))
        return found

    def probs(self) -> Tensor:
        return torch.softmax(self.logits, dim=-1)

    def top_two(self) -> list[tuple[float, float]]:
        return TensorRows(self.logits).top_two()
