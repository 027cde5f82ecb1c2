"""What compiled code reads and multiplies a second at most, on torch's threads, for the limits decoders are held to."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bild_bench.models.native.build import native_library
from bild_bench.models.native.library import address

# Of one product of the loop in limits.h: some microseconds, so the call around it weighs nothing.
_PRODUCTS = 200


def native_reading(values: Tensor) -> Callable[[], object] | None:
    """A call that reads a float32 array on the CPU once; None without the native decoder."""
    library = native_library().library
    if library is None:
        return None
    return lambda: library.native_read(address(values), values.numel(), torch.get_num_threads())


def native_products() -> tuple[Callable[[], object], int] | None:
    """A call that multiplies matrices in each core's own cache, and its FLOPs; None without the native decoder."""
    library = native_library().library
    if library is None:
        return None
    flops = library.native_multiply(1, torch.get_num_threads()) * _PRODUCTS
    return lambda: library.native_multiply(_PRODUCTS, torch.get_num_threads()), flops
