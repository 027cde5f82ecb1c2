"""The native encoder: a T5's whole encoder as one compiled call, on the CPU in float32."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bild_bench.models.native.library import address
from bild_bench.models.native.packing import embedded, packed_encoder

_BIAS_BLOCK = 64


class NativeEncoder:
    """One text at a time, so nothing is masked.

    Args:
        library: of `library.open_library`.
        library_model: a loaded T5 or mT5 model in evaluation mode; its encoder is taken apart.
    """

    def __init__(self, library: ctypes.CDLL, library_model: Any) -> None:
        self._library, self._width = library, library_model.config.d_model
        self._handle, self._distance_bias = packed_encoder(library, library_model)
        self._reach = 0

    def states(self, source: Sequence[int]) -> Tensor:
        """Source ids -> the encoder's output [length, d_model].

        Raises:
            IndexError: an id has no embedding.
        """
        states = embedded(self._library, self._handle, source, self._width)
        if len(source) > self._reach:
            self._grow_bias(len(source))
        self._library.native_encode(self._handle.pointer, address(states), len(source), torch.get_num_threads())
        return states

    @torch.inference_mode()
    def _grow_bias(self, length: int) -> None:
        self._reach = -(-length // _BIAS_BLOCK) * _BIAS_BLOCK
        bias = self._distance_bias(self._reach).contiguous()
        self._library.native_set_bias(self._handle.pointer, address(bias), bias.shape[1], self._reach - 1)
