"""Drawing tokens: temperature, top-k and top-p, and the rejection rule that keeps the target's law."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bild_bench.decoding.picking import Sampling, Verdict
from bild_bench.decoding.session import Rows


class Sampler:
    """Draws from warped distributions with a generator of its own; see `picking.Picker`.

    Args:
        sampling: how distributions are warped.
        seed: of this text's draw.
    """

    def __init__(self, sampling: Sampling, seed: int) -> None:
        self._sampling = sampling
        # Always on the CPU: the same seed gives the same draws on every device.
        self._generator = torch.Generator().manual_seed(seed)

    def pick(self, rows: Rows, row: int = -1) -> int:
        return self._draw(warp(rows.probs()[row], self._sampling).cpu())

    def propose(self, row: Rows) -> tuple[int, Tensor]:
        law = warp(row.probs()[0], self._sampling).cpu()
        return self._draw(law), law

    def judge(self, drafts: Sequence[int], proposals: Sequence[Any], rows: Rows) -> Verdict:
        """Rejection sampling (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2)."""
        p = warp(rows.probs(), self._sampling).cpu()
        uniform = torch.rand(len(drafts), generator=self._generator, dtype=torch.float64).tolist()
        for n, (draft, q) in enumerate(zip(drafts, proposals, strict=True)):
            if not accepted(float(p[n, draft]), float(q[draft]), uniform[n]):
                return Verdict(n, self._draw(residual(p[n], q)))
        return Verdict(len(drafts), self._draw(p[len(drafts)]) if len(p) > len(drafts) else None)

    def _draw(self, law: Tensor) -> int:
        return int(torch.multinomial(law, 1, generator=self._generator))


def seed_of(seed: int, text_id: str, draw: int) -> int:
    """The seed of one draw of one text: it depends on nothing else that is decoded."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{text_id}/{draw}".encode()).digest()[:8]) >> 1


def warp(probs: Tensor, sampling: Sampling) -> Tensor:
    """Temperature, then top-k, then top-p, in that order as in `transformers`.

    Args:
        probs: distributions, [..., vocabulary].

    Returns:
        Distributions of the same shape, zero where a token may not be drawn.
    """
    if sampling.temperature != 1:
        probs = torch.softmax(probs.log() / sampling.temperature, dim=-1)
    if sampling.top_k is not None and sampling.top_k < probs.shape[-1]:
        smallest = probs.topk(sampling.top_k, dim=-1).values[..., -1:]
        probs = _renormalised(probs.where(probs >= smallest, 0))
    if sampling.top_p is not None and sampling.top_p < 1:
        ordered, index = probs.sort(dim=-1, descending=True, stable=True)
        # A token stays if those before it have not reached top_p yet: the first one always stays.
        outside = ordered.cumsum(dim=-1) - ordered >= sampling.top_p
        probs = _renormalised(probs.scatter(-1, index, ordered.where(~outside, 0)))
    return probs


def accepted(p: float, q: float, uniform: float) -> bool:
    """Keep a draft with probability min(1, p / q); uniform is drawn from [0, 1)."""
    return uniform * q < p


def residual(p: Tensor, q: Tensor) -> Tensor:
    """The law of the replacement after a rejection: max(0, p - q) renormalised, or p where that has no mass."""
    rest = (p - q).clamp(min=0)
    return rest / rest.sum() if rest.sum() > 0 else p


def _renormalised(weights: Tensor) -> Tensor:
    return weights / weights.sum(dim=-1, keepdim=True)
