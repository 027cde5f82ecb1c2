"""The fast session: our own T5-family encoder and decoder in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bild_bench.models.rows import TensorRows
from bild_bench.models.t5_decoder import (
    CrossCache,
    SelfCache,
    before_head,
    embed,
    fill_keys_values,
    run_layers,
    source_keys_values,
)
from bild_bench.models.t5_encoder import T5Encoder
from bild_bench.models.t5_weights import DecoderWeights, weights_from_library

FAST_MODEL_TYPES = ("t5", "mt5")


class FastModel:
    """A T5-family checkpoint on one device; weights are shared by all its sessions.

    Args:
        library_model: a loaded T5 or mT5 model in evaluation mode; it is taken apart and must not be used afterwards.
        vocabulary: ids at and beyond this are masked (they are not in the tokenizer).
        exit_classifier: CALM's learned confidence: weight [d_model] and bias [], float32; None where there is none.
    """

    kind = "fast"

    def __init__(
        self, library_model: Any, vocabulary: int, exit_classifier: tuple[Tensor, Tensor] | None = None
    ) -> None:
        self.exit_classifier = exit_classifier
        self.weights: DecoderWeights = weights_from_library(library_model, vocabulary)
        self.encoder = T5Encoder(library_model)
        self.device, self.depth = self.weights.embedding.device, len(self.weights.layers)
        self._bias = self.weights.embedding.new_empty((self.weights.heads, 0, 0))

    @torch.inference_mode()
    def encode(self, source: Tensor) -> CrossCache:
        """Run the encoder and project its output for the decoder; source ids have shape [1, length]."""
        return source_keys_values(self.weights, self.encoder.states(source[0])[None])

    def session(self, source: CrossCache) -> FastSession:
        """A fresh session that reads an encoded source."""
        return FastSession(self, source)

    def new_cache(self) -> SelfCache:
        """Keys and values of a target, for every layer; empty."""
        return SelfCache(self.weights)

    @torch.inference_mode()
    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Ids -> states [n, d_model]."""
        return embed(self.weights, torch.tensor(tokens, device=self.device))

    @torch.inference_mode()
    def run_layers(self, layers: range, states: Tensor, cache: SelfCache, source: CrossCache, start: int) -> Tensor:
        """States [n, d_model] of positions start, start + 1, … through some layers, whose caches are written there."""
        cache.reserve(start + states.shape[0])
        bias = self.causal_bias(cache.capacity)
        return run_layers(self.weights, layers, states, cache, source, bias, start)

    @torch.inference_mode()
    def fill_layers(self, layers: range, states: Tensor, cache: SelfCache, start: int) -> None:
        """Keys and values of layers that the states do not go through, projected from those states."""
        cache.reserve(start + states.shape[0])
        fill_keys_values(self.weights, layers, states, cache, start)

    @torch.inference_mode()
    def rows(self, states: Tensor) -> TensorRows:
        """Scores of a decoder's output [n, d_model], before its final norm."""
        return TensorRows(before_head(self.weights, states), self.project)

    def project(self, states: Tensor) -> Tensor:
        """Normed and scaled decoder output [n, d_model] -> logits [n, vocabulary]."""
        return functional.linear(states, self.weights.head)

    def causal_bias(self, length: int) -> Tensor:
        """Position bias, minus infinity above the diagonal, [heads, >= length, >= length]; made once, then grown."""
        if self._bias.shape[1] < length:
            bias = self.weights.position_bias(length)
            future = torch.ones((length, length), dtype=torch.bool, device=bias.device).triu(1)
            self._bias = bias.masked_fill(future, float("-inf"))
        return self._bias


class FastSession:
    """See `decoding.session.Session`."""

    def __init__(self, model: FastModel, source: CrossCache) -> None:
        self._model, self._source = model, source
        self._cache, self._layers = model.new_cache(), range(model.depth)
        self.length = 0

    def extend(self, tokens: Sequence[int]) -> TensorRows:
        model = self._model
        states = model.run_layers(self._layers, model.embed(tokens), self._cache, self._source, self.length)
        self.length += len(tokens)
        return model.rows(states)

    def truncate(self, length: int) -> None:
        self.length = min(length, self.length)
