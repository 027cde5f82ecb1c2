"""Sessions that run some of the decoder's layers: for CALM, and for BiLD by early exit. T5 family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from bild_bench.decoding.session import Rows
from bild_bench.errors import DataError


class LayeredModel(Protocol):
    """What a layer-by-layer session needs of a model: the fast and the native one have it.

    Caches and sources are the model's own, and nobody else looks into them.
    """

    @property
    def depth(self) -> int: ...

    @property
    def exit_classifier(self) -> tuple[Tensor, Tensor] | None: ...

    def new_cache(self) -> Any: ...

    def embed(self, tokens: Sequence[int]) -> Tensor: ...

    def run_layers(self, layers: range, states: Tensor, cache: Any, source: Any, start: int) -> Tensor: ...

    def fill_layers(self, layers: range, states: Tensor, cache: Any, start: int) -> None: ...

    def rows(self, states: Tensor) -> Rows: ...


class LayeredSession:
    """One position after the other, layer by layer; see `decoding.session.LayeredSession`."""

    def __init__(self, model: LayeredModel, source: Any) -> None:
        self._model, self._source, self._cache = model, source, model.new_cache()
        self._layer = self.length = 0
        self._states = self._below = torch.empty(0)
        self._rows: Rows | None = None

    @property
    def depth(self) -> int:
        return self._model.depth

    def embed(self, tokens: Sequence[int]) -> None:
        self._states = self._below = self._model.embed(tokens)
        self._layer, self._rows = 0, None

    def run_layer(self) -> None:
        layer = range(self._layer, self._layer + 1)
        self._below = self._states
        self._states = self._model.run_layers(layer, self._states, self._cache, self._source, self.length)
        self._layer, self._rows = self._layer + 1, None

    def rows(self) -> Rows:
        if self._rows is None:
            self._rows = self._model.rows(self._states)
        return self._rows

    @torch.inference_mode()
    def similarity(self) -> float:
        return float(torch.cosine_similarity(self._states[-1].float(), self._below[-1].float(), dim=0))

    @torch.inference_mode()
    def classify(self) -> float:
        weight, bias = self._classifier()
        return float(torch.sigmoid(self._states[-1].float() @ weight + bias))

    def skip_rest(self) -> None:
        self._model.fill_layers(range(self._layer, self.depth), self._states, self._cache, self.length)
        self.length += self._states.shape[0]

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

    `length` is how far the lower layers have read; the upper layers have read a beginning of that.
    """

    def __init__(self, model: LayeredModel, source: Any, exit_layer: int) -> None:
        self.model, self.exit_layer = model, exit_layer
        self._source, self._cache = source, model.new_cache()
        self.exit_states: Tensor | None = None
        self.length = self.whole_length = 0

    def run_lower(self, tokens: Sequence[int]) -> None:
        """New tokens through the first layers; their states are kept for the upper ones."""
        start = self.length
        x = self._run(range(self.exit_layer), self.model.embed(tokens), start)
        self.exit_states = x if self.exit_states is None else torch.cat((self.exit_states[:start], x))
        self.length = start + len(tokens)

    def run_upper(self, end: int) -> Tensor:
        """The kept states of positions that the upper layers have not seen, up to end, through those layers."""
        start, self.whole_length = self.whole_length, end
        return self._run(range(self.exit_layer, self.model.depth), self.states(start, end), start)

    def states(self, start: int, end: int) -> Tensor:
        """What the lower layers left at some positions, [end - start, d_model]."""
        assert self.exit_states is not None, "nothing was fed yet"
        return self.exit_states[start:end]

    def truncate(self, length: int) -> None:
        """For both sessions: they read one text, and what replaces its end is new to either."""
        self.length = min(length, self.length)
        self.whole_length = min(length, self.whole_length)

    def _run(self, layers: range, states: Tensor, start: int) -> Tensor:
        return self.model.run_layers(layers, states, self._cache, self._source, start)


class LowerSession:
    """The first layers with the final norm and the shared head, as the small model."""

    def __init__(self, shared: _SharedDecoder) -> None:
        self._shared = shared

    @property
    def length(self) -> int:
        return self._shared.length

    @torch.inference_mode()
    def extend(self, tokens: Sequence[int]) -> Rows:
        shared, start = self._shared, self.length
        shared.run_lower(tokens)
        return shared.model.rows(shared.states(start, shared.length))

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
    def extend(self, tokens: Sequence[int]) -> Rows:
        shared, start = self._shared, self.length
        unseen = tokens[shared.length - start :]
        if unseen:
            shared.run_lower(unseen)
        return shared.model.rows(shared.run_upper(start + len(tokens)))

    def truncate(self, length: int) -> None:
        self._shared.truncate(length)


def early_exit_sessions(model: LayeredModel, source: Any, exit_layer: int) -> tuple[LowerSession, WholeSession]:
    """The small and the large session of one model that leaves early at a layer (from 1).

    Raises:
        DataError: the model has no layer above that one.
    """
    if exit_layer >= model.depth:
        raise DataError(
            "--exit-layer", exit_layer, f"the decoder has {model.depth} layers (allowed: below that)", "try 1"
        )
    shared = _SharedDecoder(model, source, exit_layer)
    return LowerSession(shared), WholeSession(shared)
