"""Confident Adaptive Language Modeling (CALM; Schuster et al., NeurIPS 2022, arXiv 2207.07061).

One model; each token leaves the decoder at the first allowed layer that is confident enough. Layers above it are
skipped, and get their keys and values projected from the state the token left with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bild_bench.decoding.picking import Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.decoding.session import LayeredSession, Sessions
from bild_bench.decoding.transcript import Transcript
from bild_bench.errors import UsageError

Measure = Literal["softmax", "state", "classifier"]


@dataclass(frozen=True)
class CalmSettings:
    """When a token may leave.

    Args:
        threshold: lambda; a layer is left when its confidence reaches it. 1 or more never, 0 always.
        measure: "softmax" (top-1 minus top-2 probability), "state" (cosine of the last two layers' states), or
            "classifier" (a learned one, that the checkpoint must hold).
        decay: lower the threshold along the text (CALM, section 3.4).
        min_layer: the first layer that may be left, from 1; "state" compares with the layer below, so from 2.

    Raises:
        UsageError: a value out of range.
    """

    threshold: float = 0.9
    measure: Measure = "softmax"
    decay: bool = False
    min_layer: int | None = None

    def __post_init__(self) -> None:
        if not (self.threshold >= 0 and math.isfinite(self.threshold)):
            raise UsageError("--threshold", self.threshold, "must be 0 or more", "try 0.9")
        if self.measure not in ("softmax", "state", "classifier"):
            raise UsageError("--measure", self.measure, "must be softmax, state or classifier", "try softmax")
        if self.min_layer is not None and self.min_layer < self._lowest:
            raise UsageError("--min-layer", self.min_layer, f"must be {self._lowest} or more", "leave it out")

    @property
    def _lowest(self) -> int:
        return 2 if self.measure == "state" else 1

    @property
    def first_exit(self) -> int:
        """The first layer that may be left, from 1."""
        return self._lowest if self.min_layer is None else self.min_layer

    def label(self) -> str:
        """What distinguishes a point of this method, for tables and plots."""
        parts = [self.measure, f"lambda={self.threshold:g}"]
        if self.decay:
            parts.append("decay")
        if self.min_layer is not None:
            parts.append(f"from={self.min_layer}")
        return " ".join(parts)


def calm(sessions: Sessions, settings: CalmSettings, limits: Limits, picker: Picker) -> Decoded:
    """Decode one text, each token through as many layers as it needs."""
    session, text = sessions.need_layered(), Transcript(limits)
    exit_layers = [0] * session.depth
    while not text.ended:
        threshold = threshold_at(len(text), settings, limits)
        layer = _run_until_confident(session, text.unseen(session.length), settings, threshold)
        token = picker.pick(session.rows())
        session.skip_rest()
        text.large_calls += 1
        text.commit(token)
        exit_layers[layer - 1] += 1
    return replace(text.finish(), exit_layers=tuple(exit_layers))


def threshold_at(position: int, settings: CalmSettings, limits: Limits) -> float:
    """lambda_t: the threshold itself, or clip(0.9 lambda + 0.1 exp(-4 t / N), 0, 1) with N the length limit."""
    if not settings.decay:
        return settings.threshold
    decayed = 0.9 * settings.threshold + 0.1 * math.exp(-4 * position / limits.max_tokens)
    return min(max(decayed, 0.0), 1.0)


def _run_until_confident(
    session: LayeredSession, tokens: Sequence[int], settings: CalmSettings, threshold: float
) -> int:
    """Layer by layer; returns the layer that the token leaves at, from 1.

    A threshold of 1 is never reached, even where a softmax saturates to exactly 1, and 0 always is.
    """
    session.embed(tokens)
    for layer in range(1, session.depth + 1):
        session.run_layer()
        if layer < settings.first_exit or layer == session.depth or threshold >= 1:
            continue
        if threshold <= 0 or _confidence(session, settings.measure) >= threshold:
            return layer
    return session.depth


def _confidence(session: LayeredSession, measure: Measure) -> float:
    if measure == "softmax":
        first, second = session.rows().top_two()[0]
        return first - second
    if measure == "state":
        return min(max(session.similarity(), 0.0), 1.0)
    return session.classify()
