"""The native session: a T5's encoder as one compiled call and its decoder as one per step, on the CPU in float32."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bild_bench.models.native.encoder import NativeEncoder
from bild_bench.models.native.library import address
from bild_bench.models.native.packing import Handle, embedded, packed_decoder
from bild_bench.models.native.rows import NativeRows

_BIAS_BLOCK = 64

# The feed-forward's activation that t5.cpp has, gated or not, by the library's name for it.
NATIVE_ACTIVATIONS = {True: "gelu_new", False: "relu"}


class EncodedSource(Handle):
    """A source's keys and values; `states` is the encoder's output [1, length, d_model], which peers read."""

    def __init__(self, pointer: int | None, free: Any, states: Tensor) -> None:
        super().__init__(pointer, free)
        self.states = states


class NativeModel:
    """A T5-family checkpoint on the CPU in float32; weights are shared by all its sessions.

    Args:
        library: of `library.open_library`.
        library_model: a loaded T5 or mT5 model in evaluation mode; it is taken apart and must not be used afterwards.
        vocabulary: ids at and beyond this are masked (they are not in the tokenizer).
        exit_classifier: CALM's learned confidence: weight [d_model] and bias [], float32; None where there is none.
    """

    kind = "native"

    def __init__(
        self,
        library: ctypes.CDLL,
        library_model: Any,
        vocabulary: int,
        exit_classifier: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.library, self.exit_classifier = library, exit_classifier
        self.device, self.width = library_model.device, library_model.config.d_model
        self.depth = len(library_model.decoder.block)
        self.handle, self._vocabulary, self._position_bias = packed_decoder(library, library_model, vocabulary)
        self.encoder = NativeEncoder(library, library_model)
        self._bias_length = 0

    @torch.inference_mode()
    def encode(self, source: Tensor) -> EncodedSource:
        """Run the encoder and project its output for the decoder; source ids have shape [1, length]."""
        rows = self.encoder.states(source[0].tolist())
        made = self.library.native_source(self.handle.pointer, address(rows), len(rows), torch.get_num_threads())
        return EncodedSource(made, self.library.native_free_cache, rows[None])

    def session(self, source: Handle) -> NativeSession:
        """A fresh session that reads an encoded source."""
        return NativeSession(self, source)

    def new_cache(self) -> Handle:
        """Keys and values of a target, for every layer; empty."""
        return Handle(self.library.native_cache(self.handle.pointer), self.library.native_free_cache)

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Ids -> states [n, d_model].

        Raises:
            IndexError: an id has no embedding.
        """
        return embedded(self.library, self.handle, tokens, self.width)

    def run_layers(self, layers: range, states: Tensor, cache: Handle, source: Handle, start: int) -> Tensor:
        """States [n, d_model] of positions start, start + 1, … through some layers, whose caches are written there."""
        states = states.clone(memory_format=torch.contiguous_format)
        self.run_in_place(layers, states, cache, source, start)
        return states

    def run_in_place(self, layers: range, states: Tensor, cache: Handle, source: Handle, start: int) -> None:
        """The same, into the states that were given."""
        count = states.shape[0]
        if start + count > self._bias_length:
            self._grow_bias(start + count)
        self.library.native_run_layers(
            *(self.handle.pointer, cache.pointer, source.pointer, states.data_ptr(), count, start),
            *(layers.start, layers.stop, torch.get_num_threads()),
        )

    def fill_layers(self, layers: range, states: Tensor, cache: Handle, start: int) -> None:
        """Keys and values of layers that the states do not go through, projected from those states."""
        self.library.native_fill(
            *(self.handle.pointer, cache.pointer, address(states), states.shape[0], start, layers.start, layers.stop)
        )

    def rows(self, states: Tensor) -> NativeRows:
        """Scores of a decoder's output [n, d_model], before its final norm."""
        return NativeRows(states, self.score)

    def score(self, states: Tensor) -> tuple[Tensor, list[int], list[float]]:
        """See `rows.Score`."""
        count = states.shape[0]
        logits = torch.empty((count, self._vocabulary))
        ids, logprobs = (ctypes.c_int64 * count)(), (ctypes.c_float * count)()
        self.library.native_score(
            self.handle.pointer, states.data_ptr(), count, torch.get_num_threads(), logits.data_ptr(), ids, logprobs
        )
        return logits, list(ids), list(logprobs)

    @torch.inference_mode()
    def _grow_bias(self, length: int) -> None:
        length = -(-length // _BIAS_BLOCK) * _BIAS_BLOCK
        bias = self._position_bias(length)[:, -1].contiguous()
        self.library.native_set_bias(self.handle.pointer, address(bias), length, length - 1)
        self._bias_length = length


class NativeSession:
    """See `decoding.session.Session`."""

    def __init__(self, model: NativeModel, source: Handle) -> None:
        self._model, self._source = model, source
        self._cache = model.new_cache()
        self._layers = range(model.depth)
        self.length = 0

    def extend(self, tokens: Sequence[int]) -> NativeRows:
        model = self._model
        states = model.embed(tokens)
        model.run_in_place(self._layers, states, self._cache, self._source, self.length)
        self.length += len(tokens)
        return model.rows(states)

    def truncate(self, length: int) -> None:
        self.length = min(length, self.length)
