"""Rows of next-token scores over a tensor, read on demand with one transfer to the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bild_bench.errors import RunError


class TensorRows:
    """Scores of n positions; see `decoding.session.Rows`.

    Args:
        states: what the scores are computed from, shape [n, d] (or the logits themselves, [n, vocabulary]).
        project: states -> logits, applied at the first reading, so that rows nobody reads cost nothing.

    Raises:
        RunError: at a reading, when a row's best score is not a finite number.
    """

    def __init__(self, states: Tensor, project: Callable[[Tensor], Tensor] | None = None) -> None:
        self._states, self._project = states, project
        self._logits: Tensor | None = None
        self._argmax: list[int] | None = None
        self._max_logprob: list[float] | None = None

    def __len__(self) -> int:
        return self._states.shape[0]

    @property
    def logits(self) -> Tensor:
        """Shape [n, vocabulary], float32 or wider."""
        if self._logits is None:
            logits = self._states if self._project is None else self._project(self._states)
            self._logits = logits if logits.dtype == torch.float64 else logits.float()
        return self._logits

    def last(self) -> TensorRows:
        """The last row alone; the others are never projected."""
        return self if len(self) == 1 else TensorRows(self._states[-1:], self._project)

    def argmax(self) -> list[int]:
        if self._argmax is None:
            best, index = self.logits.max(dim=-1)
            # Float64 holds every id exactly; stacking makes the two readings one transfer.
            scores, ids = torch.stack((best.double(), index.double())).tolist()
            self._argmax = checked_ids(scores, ids)
        return self._argmax

    def max_prob(self) -> list[float]:
        if self._max_logprob is None:
            self.logprob(())
        assert self._max_logprob is not None
        return [math.exp(value) for value in self._max_logprob]

    def logprob(self, tokens: Sequence[int], first: int = 0) -> list[float]:
        logits, count = self.logits, len(tokens)
        best, index = logits.max(dim=-1)
        normaliser = logits.logsumexp(dim=-1)
        readings = [(best - normaliser).double(), index.double()]
        if count:
            chosen = torch.tensor(tokens, device=logits.device).unsqueeze(-1)
            asked = slice(first, first + count)
            readings.append((logits[asked].gather(-1, chosen).squeeze(-1) - normaliser[asked]).double())
        values = torch.cat(readings).tolist()
        rows = len(self)
        self._max_logprob = values[:rows]
        self._argmax = checked_ids(values[:rows], values[rows : 2 * rows])
        return values[2 * rows :]

    def probs(self) -> Tensor:
        return torch.softmax(self.logits, dim=-1)

    def top_two(self) -> list[tuple[float, float]]:
        return [(first, second) for first, second in self.probs().topk(2, dim=-1).values.tolist()]


def checked_ids(scores: Sequence[float], ids: Sequence[float]) -> list[int]:
    """The ids, where every row's best score is a finite number.

    Raises:
        RunError: one is not.
    """
    for row, score in enumerate(scores):
        if not math.isfinite(score):
            raise RunError(
                "model output",
                score,
                f"row {row} has no finite best score",
                "try --dtype float32, or another checkpoint",
            )
    return [int(index) for index in ids]
