"""The machine's limit for one step: the decoder's weights through the memory, or their arithmetic if that is slower."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from bench.interleave import Contestant, Text, Turn
from bild_bench.measure.operations import DecoderCall, Shape, Work, decoder_call
from bild_bench.models.native.limits import native_reading

_COLUMNS = 1024
_TRIES = 3
_LEAST_SECONDS = 0.02


def step_of(shape: Shape, rows: int) -> Work:
    """FLOPs and weight bytes of a step of this many tokens without text or source: the least that any decoder needs.

    Keys and values are left out, so the limit is a little lower than any decoder's.
    """
    return decoder_call(shape, DecoderCall(rows=rows, cached=0, source=0, projected=rows))


def limit_seconds(work: Work, seconds_a_byte: float, flops_a_second: float) -> float:
    """The least that the step can take: its bytes or its arithmetic, whichever takes longer."""
    return max(work.weight_bytes * seconds_a_byte, work.flops / flops_a_second)


def memory_reader(size: int) -> Callable[[], float]:
    """A function that reads an array of `size` bytes with all of torch's threads, and tells its seconds per byte.

    The array is as large as the decoder's weights: far larger than the caches for large models, while a small model's
    weights stay in them, in the limit as in the decoder. Read as a sum, as a matrix by a vector, and by compiled code
    where there is a compiler; the fastest counts.
    """
    matrix = torch.ones((max(1, size // (4 * _COLUMNS)), _COLUMNS), dtype=torch.float32)
    vector, held = torch.ones(_COLUMNS), 4 * matrix.numel()
    native = native_reading(matrix)
    reads = [matrix.sum, lambda: torch.mv(matrix, vector), *([] if native is None else [native])]

    @torch.inference_mode()
    def seconds_a_byte() -> float:
        return min(_best_seconds(read) for read in reads) / held

    return seconds_a_byte


def limit_contestant(work: Work, flops_a_second: float) -> Contestant:
    """The limit of one step, measured anew at every turn: memory's speed varies as all else does."""
    seconds_a_byte = memory_reader(work.weight_bytes)

    def contestant(text: Text) -> Turn:
        return Turn(limit_seconds(work, seconds_a_byte(), flops_a_second))

    return contestant


def _best_seconds(read: Callable[[], object]) -> float:
    """The least of several tries, each long enough for the clock: a limit is what the machine can do."""
    start = time.perf_counter()
    read()
    repeats = max(1, round(_LEAST_SECONDS / max(time.perf_counter() - start, 1e-9)))
    tries = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        for _ in range(repeats):
            read()
        tries.append((time.perf_counter() - start) / repeats)
    return min(tries)
