"""Weights in the native order, and the handles of what native code keeps."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bild_bench.models.native.library import Shape, address
from bild_bench.models.t5_weights import (
    DecoderWeights,
    EncoderLayerWeights,
    EncoderWeights,
    LayerWeights,
    encoder_from_library,
    weights_from_library,
)


class Handle:
    """A native object, freed with its last reference here."""

    def __init__(self, pointer: int | None, free: Any, keep: object = None) -> None:
        if pointer is None:
            raise MemoryError("no memory for the native decoder")
        self.pointer, self._keep = pointer, keep
        weakref.finalize(self, free, pointer)


def packed_decoder(
    library: ctypes.CDLL, library_model: Any, vocabulary: int
) -> tuple[Handle, int, Callable[[int], Tensor]]:
    """A loaded model's decoder, how many ids it scores, and what makes its position bias; the modules are emptied."""
    weights = weights_from_library(library_model, vocabulary)
    handle = _model(library, weights, weights.head)
    layers, weights = list(weights.layers), replace(weights, layers=())
    while layers:
        # Each is released when it is packed, so that memory peaks at one model and one layer.
        layer = layers.pop(0)
        _add(library, handle, *_shared(layer), layer.cross_norm, layer.cross_q, layer.cross_kv, layer.cross_out)
        del layer
    return handle, weights.head.shape[0], weights.position_bias


def packed_encoder(library: ctypes.CDLL, library_model: Any) -> tuple[Handle, Callable[[int], Tensor]]:
    """The same of its encoder, which scores nothing."""
    weights = encoder_from_library(library_model)
    handle = _model(library, weights, None)
    layers, weights = list(weights.layers), replace(weights, layers=())
    while layers:
        _add(library, handle, *_shared(layers.pop(0)))
    return handle, weights.distance_bias


def embedded(library: ctypes.CDLL, model: Handle, tokens: Sequence[int], width: int) -> Tensor:
    """Ids -> states [n, d_model] of a packed model.

    Raises:
        IndexError: an id has no embedding.
    """
    count = len(tokens)
    states = torch.empty((count, width))
    if not library.native_embed(model.pointer, (ctypes.c_int64 * count)(*tokens), count, states.data_ptr()):
        raise IndexError(f"a token is outside the embedding: {list(tokens)}")
    return states


def _model(library: ctypes.CDLL, weights: DecoderWeights | EncoderWeights, head: Tensor | None) -> Handle:
    scale = weights.head_scale if isinstance(weights, DecoderWeights) else 1.0
    shape = Shape(
        layers=len(weights.layers),
        width=weights.embedding.shape[1],
        heads=weights.heads,
        head_width=weights.d_kv,
        feed_width=weights.layers[0].ff_out.shape[1],
        vocabulary=0 if head is None else head.shape[0],
        known_ids=weights.embedding.shape[0],
        gated=int(weights.gated),
        decoder=int(head is not None),
        epsilon=weights.epsilon,
        head_scale=scale,
    )
    head_at = None if head is None else address(head)
    made = library.native_model(ctypes.byref(shape), address(weights.embedding), address(weights.final_norm), head_at)
    # The embedding is read where it is; the rest is copied.
    return Handle(made, library.native_free_model, weights.embedding)


def _shared(layer: LayerWeights | EncoderLayerWeights) -> tuple[Tensor, ...]:
    return layer.self_norm, layer.qkv, layer.self_out, layer.ff_norm, layer.ff_in, layer.ff_out


def _add(library: ctypes.CDLL, model: Handle, *tensors: Tensor) -> None:
    library.native_add_layer(model.pointer, (ctypes.c_void_p * len(tensors))(*map(address, tensors)))
