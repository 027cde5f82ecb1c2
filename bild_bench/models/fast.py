"""The fast session: our own T5-family decoder behind the library's encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from bild_bench.models.rows import TensorRows
from bild_bench.models.t5_decoder import CrossCache, SelfCache, decode, source_keys_values
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
        self.encoder = library_model.encoder
        self.weights: DecoderWeights = weights_from_library(library_model, vocabulary)
        self.device = self.weights.embedding.device
        self._bias = self.weights.embedding.new_empty((self.weights.heads, 0, 0))

    @torch.inference_mode()
    def encode(self, source: Tensor) -> CrossCache:
        """Run the encoder and project its output for the decoder; source ids have shape [1, length]."""
        states = self.encoder(input_ids=source, attention_mask=torch.ones_like(source)).last_hidden_state
        return source_keys_values(self.weights, states)

    def session(self, source: CrossCache) -> FastSession:
        """A fresh session that reads an encoded source."""
        return FastSession(self, source)

    def project(self, states: Tensor) -> Tensor:
        """Decoder output [n, d_model] -> logits [n, vocabulary]."""
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
        self._cache = SelfCache(model.weights)

    @property
    def length(self) -> int:
        return self._cache.length

    @torch.inference_mode()
    def extend(self, tokens: Sequence[int]) -> TensorRows:
        model, cache = self._model, self._cache
        cache.reserve(cache.length + len(tokens))
        ids = torch.tensor(tokens, device=model.device)
        states = decode(model.weights, ids, cache, self._source, model.causal_bias(cache.capacity))
        return TensorRows(states, model.project)

    def truncate(self, length: int) -> None:
        self._cache.length = min(length, self._cache.length)
