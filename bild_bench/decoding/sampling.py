"""Drawing tokens: temperature, top-k and top-p, and the rejection rule that keeps the target's distribution."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bild_bench.decoding.picking import Sampling, Verdict
from bild_bench.decoding.session import Rows
from bild_bench.errors import RunError

# At this temperature only the best token and its equals are left, in float32 too, which has no room for 1e-46.
_COLDEST = 1e-30
# To sort a whole vocabulary for every row would cost more than a small model's step; most nuclei are smaller than this.
_MOST_NUCLEI = 256


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
        return self._draw(self._distribution(rows.probs()[row]))

    def propose(self, row: Rows) -> tuple[int, Tensor]:
        distribution = self._distribution(row.probs()[0])
        return self._draw(distribution), distribution

    def judge(self, drafts: Sequence[int], proposals: Sequence[Any], rows: Rows) -> Verdict:
        """Rejection sampling (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2)."""
        p = self._distribution(rows.probs())
        uniform = torch.rand(len(drafts), generator=self._generator, dtype=torch.float64).tolist()
        for n, (draft, q) in enumerate(zip(drafts, proposals, strict=True)):
            if not accepted(float(p[n, draft]), float(q[draft]), uniform[n]):
                return Verdict(n, self._draw(residual(p[n], q)))
        return Verdict(len(drafts), self._draw(p[len(drafts)]) if len(p) > len(drafts) else None)

    def _distribution(self, probs: Tensor) -> Tensor:
        return warp(probs, self._sampling).cpu()

    def _draw(self, distribution: Tensor) -> int:
        """The token at which the cumulative distribution passes a uniform number.

        `torch.multinomial` draws one uniform number per token instead.

        A token without probability adds nothing to the sum, so the sum never passes anything at it.

        Raises:
            RunError: the model's scores, and so the distribution, are not finite.
        """
        cumulative = distribution.double().cumsum(dim=-1)
        total = float(cumulative[-1])
        if not math.isfinite(total):
            raise RunError(
                "model output", total, "no distribution to draw from", "try --dtype float32, or another checkpoint"
            )
        uniform = torch.rand(1, generator=self._generator, dtype=torch.float64)
        return int(torch.searchsorted(cumulative, uniform * total, right=True))


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
        probs = torch.softmax(probs.log() / max(sampling.temperature, _COLDEST), dim=-1)
    if sampling.top_k is not None and sampling.top_k < probs.shape[-1]:
        smallest = probs.topk(sampling.top_k, dim=-1).values[..., -1:]
        probs = _renormalised(probs.where(probs >= smallest, 0))
    if sampling.top_p is not None and sampling.top_p < 1:
        probs = _renormalised(probs.where(_nucleus(probs, sampling.top_p), 0))
    return probs


def _nucleus(probs: Tensor, top_p: float) -> Tensor:
    """Which tokens are in the smallest set that reaches top_p; of equally probable ones, those of the lowest ids.

    A row's answer depends on nothing but the row: on ties a plain topk may decide otherwise for one row than for the
    same one among others, and the distributions of two methods would differ.
    """
    for count in (min(_MOST_NUCLEI, probs.shape[-1]), probs.shape[-1]):
        ordered = probs.topk(count, dim=-1).values
        # A token is out if those before it have reached top_p: the first one never is.
        out = ordered.cumsum(dim=-1) - ordered >= top_p
        if bool(out[..., -1].all()):
            break
    size = count - out.sum(dim=-1, keepdim=True)
    least = ordered.gather(-1, size - 1)
    above, equal = probs > least, probs == least
    return above | (equal & (equal.cumsum(dim=-1) <= size - above.sum(dim=-1, keepdim=True)))


def accepted(p: float, q: float, uniform: float) -> bool:
    """Keep a draft with probability min(1, p / q); uniform is drawn from [0, 1)."""
    return uniform * q < p


def residual(p: Tensor, q: Tensor) -> Tensor:
    """The replacement's distribution after a rejection: max(0, p - q) renormalised, or p where that has no mass."""
    rest = (p - q).clamp(min=0)
    return rest / rest.sum() if rest.sum() > 0 else p


def _renormalised(weights: Tensor) -> Tensor:
    return weights / weights.sum(dim=-1, keepdim=True)
