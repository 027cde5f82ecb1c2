"""Sessions that run some of the decoder's layers: for CALM, and for BiLD by early exit. T5 family."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bild_bench.errors import DataError
from bild_bench.models.fast import FastModel
from bild_bench.models.rows import TensorRows
from bild_bench.models.t5_decoder import CrossCache, SelfCache, before_head, embed, fill_keys_values, run_layers


class LayeredSession:
    """One position after the other, layer by layer; see `decoding.session.LayeredSession`."""

    def __init__(self, model: FastModel, source: CrossCache) -> None:
        self._model, self._source = model, source
        self._cache = SelfCache(model.weights)
        self._layer = 0
        self._states = self._below = model.weights.embedding.new_empty(0)
        self._rows: TensorRows | None = None

    @property
    def depth(self) -> int:
        return len(self._model.weights.layers)

    @property
    def length(self) -> int:
        return self._cache.length

    @torch.inference_mode()
    def embed(self, tokens: Sequence[int]) -> None:
        self._cache.reserve(self._cache.length + len(tokens))
        self._states = self._below = embed(self._model.weights, torch.tensor(tokens, device=self._model.device))
        self._layer, self._rows = 0, None

    @torch.inference_mode()
    def run_layer(self) -> None:
        bias = self._model.causal_bias(self._cache.capacity)
        layer = range(self._layer, self._layer + 1)
        self._below = self._states
        self._states = run_layers(
            self._model.weights, layer, self._states, self._cache, self._source, bias, self._cache.length
        )
        self._layer, self._rows = self._layer + 1, None

    def rows(self) -> TensorRows:
        if self._rows is None:
            self._rows = TensorRows(before_head(self._model.weights, self._states), self._model.project)
        return self._rows

    @torch.inference_mode()
    def similarity(self) -> float:
        return float(torch.cosine_similarity(self._states[-1].float(), self._below[-1].float(), dim=0))

    @torch.inference_mode()
    def classify(self) -> float:
        weight, bias = self._classifier()
        return float(torch.sigmoid(self._states[-1].float() @ weight + bias))

    @torch.inference_mode()
    def skip_rest(self) -> None:
        rest = range(self._layer, self.depth)
        fill_keys_values(self._model.weights, rest, self._states, self._cache, self._cache.length)
        self._cache.length += self._states.shape[0]

    def _classifier(self) -> tuple[Tensor, Tensor]:
        if self._model.exit_classifier is None:
            raise DataError(
                "--measure",
                "classifier",
                "the checkpoint holds no exit classifier (exit_classifier.safetensors)",
                "use --measure softmax or state",
            )
        return self._model.exit_classifier


class _SharedDecoder:
    """What the two sessions of an early-exit pair share: one cache, and the states that the lower layers left.

    The cache's length is how far the lower layers have read; the upper layers have read a beginning of that.
    """

    def __init__(self, model: FastModel, source: CrossCache, exit_layer: int) -> None:
        self.model, self.source, self.exit_layer = model, source, exit_layer
        self.cache = SelfCache(model.weights)
        self.exit_states = model.weights.embedding.new_empty((0, model.weights.embedding.shape[1]))
        self.whole_length = 0

    def run_lower(self, tokens: Sequence[int]) -> None:
        """New tokens through the first layers; their states are kept for the upper ones."""
        start = self.cache.length
        self.cache.reserve(start + len(tokens))
        x = embed(self.model.weights, torch.tensor(tokens, device=self.model.device))
        x = self._run(range(self.exit_layer), x, start)
        self.exit_states = torch.cat((self.exit_states[:start], x))
        self.cache.length = start + len(tokens)

    def run_upper(self, end: int) -> Tensor:
        """The kept states of positions that the upper layers have not seen, up to end, through those layers."""
        start, self.whole_length = self.whole_length, end
        layers = range(self.exit_layer, len(self.model.weights.layers))
        return self._run(layers, self.exit_states[start:end], start)

    def truncate(self, length: int) -> None:
        """For both sessions: they read one text, and what replaces its end is new to either."""
        self.cache.length = min(length, self.cache.length)
        self.whole_length = min(length, self.whole_length)

    def rows(self, states: Tensor) -> TensorRows:
        return TensorRows(before_head(self.model.weights, states), self.model.project)

    def _run(self, layers: range, x: Tensor, start: int) -> Tensor:
        bias = self.model.causal_bias(self.cache.capacity)
        return run_layers(self.model.weights, layers, x, self.cache, self.source, bias, start)


class LowerSession:
    """The first layers with the final norm and the shared head, as the small model."""

    def __init__(self, shared: _SharedDecoder) -> None:
        self._shared = shared

    @property
    def length(self) -> int:
        return self._shared.cache.length

    @torch.inference_mode()
    def extend(self, tokens: Sequence[int]) -> TensorRows:
        start = self.length
        self._shared.run_lower(tokens)
        return self._shared.rows(self._shared.exit_states[start:])

    def truncate(self, length: int) -> None:
        self._shared.truncate(length)


class WholeSession:
    """All layers, as the large model: positions that the lower layers have seen go through the upper ones only."""

    def __init__(self, shared: _SharedDecoder) -> None:
        self._shared = shared

    @property
    def length(self) -> int:
        return self._shared.whole_length

    @torch.inference_mode()
    def extend(self, tokens: Sequence[int]) -> TensorRows:
        start = self.length
        unseen = tokens[self._shared.cache.length - start :]
        if unseen:
            self._shared.run_lower(unseen)
        return self._shared.rows(self._shared.run_upper(start + len(tokens)))

    def truncate(self, length: int) -> None:
        self._shared.truncate(length)


def early_exit_sessions(model: FastModel, source: CrossCache, exit_layer: int) -> tuple[LowerSession, WholeSession]:
    """The small and the large session of one model that leaves early at a layer (from 1).

    Raises:
        DataError: the model has no layer above that one.
    """
    depth = len(model.weights.layers)
    if exit_layer >= depth:
        raise DataError("--exit-layer", exit_layer, f"the decoder has {depth} layers (allowed: below that)", "try 1")
    shared = _SharedDecoder(model, source, exit_layer)
    return LowerSession(shared), WholeSession(shared)
