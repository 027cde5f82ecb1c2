"""What this machine can do at most: bytes per second from memory, and FLOPs per second in matrix products.

The two ceilings of the roofline model (Williams, Waterman and Patterson 2009): a computation of I FLOPs per byte runs
at min(peak, I x bandwidth) FLOP/s at best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bild_bench.measure import machine
from bild_bench.measure.clock import now

# Far larger than the last-level caches of today's CPUs and GPUs.
ARRAY_BYTES = 1 << 30
_SHARE_OF_MEMORY = 8
_LEAST_SECONDS = 0.05
_TRIES = 7
_LARGEST_MATRIX = 16384


@dataclass(frozen=True)
class Ceilings:
    """The machine's limits, with the threads and the dtype in use.

    Args:
        bandwidth: bytes per second, reading an array far larger than the caches.
        flops: FLOP/s in products of matrices in the dtype; see `peak_flops`.
        array_bytes: the array's size.
        resident: model's role -> bytes per second reading an array of the size of its decoder's weights, over and over:
            a small model stays in the caches, and is not held to the memory's bandwidth.
    """

    bandwidth: float
    flops: float
    array_bytes: int
    resident: dict[str, float]

    def seconds(self, role: str, flops: int, moved: int) -> float:
        """The least that a call can take: its bytes or its FLOPs, whichever takes longer."""
        return max(moved / self.resident[role], flops / self.flops)


def measure_ceilings(device: str, dtype: str, weights: dict[str, int], array_bytes: int = ARRAY_BYTES) -> Ceilings:
    """Measure both ceilings, with torch's threads as they are; takes some seconds.

    Args:
        device: as torch names it.
        dtype: a key of `models.library.DTYPES`.
        weights: role -> bytes that a decoder call reads.
        array_bytes: of the large array; less where there is little memory.
    """
    size = _affordable(device, array_bytes)
    bandwidth = read_bandwidth(device, size)
    # No model reads faster from caches than its own size allows, and none slower than from memory.
    resident = {role: max(bandwidth, read_bandwidth(device, min(size, n))) for role, n in weights.items()}
    return Ceilings(bandwidth, peak_flops(device, dtype), size, resident)


def read_bandwidth(device: str, size: int) -> float:
    """Bytes per second of summing a float32 array of this many bytes; the best of several tries.

    On a CPU by torch and by compiled code, which reads caches faster; the faster counts.
    """
    import torch

    from bild_bench.models.native.limits import native_reading

    array = torch.ones(max(1, size // 4), dtype=torch.float32, device=device)
    native = native_reading(array) if device == "cpu" else None
    return 4 * array.numel() / min(_best_seconds(device, read) for read in (array.sum, native) if read is not None)


def peak_flops(device: str, dtype: str) -> float:
    """FLOP/s in products: of two large square matrices by torch, or in float32 on a CPU out of the caches if faster."""
    from bild_bench.models.native.limits import native_products

    best = square_flops(device, dtype)
    native = native_products() if device == "cpu" and dtype == "float32" else None
    return best if native is None else max(best, native[1] / _best_seconds(device, native[0]))


def square_flops(device: str, dtype: str) -> float:
    """FLOP/s of torch's product of two square matrices; doubled in size until one takes long enough to be timed."""
    import torch

    side, best = 256, 0.0
    while side <= _LARGEST_MATRIX:
        left, right = (torch.ones((side, side), dtype=getattr(torch, dtype), device=device) for _ in range(2))

        def product(left: Any = left, right: Any = right) -> Any:
            return left @ right

        seconds = _best_seconds(device, product)
        best = max(best, 2 * side**3 / seconds)
        if seconds > _LEAST_SECONDS:
            break
        side *= 2
    return best


def _best_seconds(device: str, call: Callable[[], Any]) -> float:
    """Seconds of one call: the least of several tries, each long enough for the clock.

    The least and not the median: a ceiling is what the machine can do, not what it did while it was disturbed.
    """
    call()
    start = now(device)
    call()
    once = max(now(device) - start, 1e-9)
    repeats = max(1, math.ceil(_LEAST_SECONDS / once))
    best = math.inf
    for _ in range(_TRIES):
        start = now(device)
        for _ in range(repeats):
            call()
        best = min(best, (now(device) - start) / repeats)
    return best


def _affordable(device: str, size: int) -> int:
    """Not more than a share of the memory that is free."""
    if device.startswith("cuda"):
        import torch

        free: int | None = torch.cuda.mem_get_info(device)[0]
    else:
        free = machine.available_memory()
    return size if free is None else max(1 << 20, min(size, free // _SHARE_OF_MEMORY))
