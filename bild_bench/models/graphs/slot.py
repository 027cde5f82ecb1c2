"""A slot: one text's static buffers, the steps captured over them, and how ids get in and scores come out.

A graph is bound to its buffers' addresses and takes far longer to capture than to run, so slots outlive texts: a
session borrows one, and the next text finds it captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bild_bench.models.graphs.capture import Capture, Run
from bild_bench.models.graphs.step import MOST, SIZES, Buffers, make_buffers, step
from bild_bench.models.t5_decoder import CrossCache
from bild_bench.models.t5_weights import DecoderWeights

# Positions of target and source come in multiples of this.
BLOCK = 64


def in_blocks(length: int) -> int:
    """The length rounded up to whole blocks, one at least."""
    return max(1, -(-length // BLOCK)) * BLOCK


class Slot:
    """Buffers and steps for one text at a time.

    Args:
        weights: the decoder's.
        bias: length -> causal position bias [heads, >= length, >= length].
        capture: step -> replay.
        capacity, width: positions of target and source; multiples of `BLOCK`.
    """

    def __init__(self, weights: DecoderWeights, bias: Any, capture: Capture, capacity: int, width: int) -> None:
        self._weights, self._bias, self._capture = weights, bias, capture
        # How many steps were run: scores read after a later one would be that one's.
        self.steps = 0
        on_gpu = weights.embedding.device.type == "cuda"
        self._staged = torch.zeros(2 + MOST, dtype=torch.int64, pin_memory=on_gpu)
        self._staged_ids = self._staged.numpy()
        self._read = torch.zeros((MOST, 3), dtype=torch.float64, pin_memory=on_gpu)
        self._sent = torch.cuda.Event() if on_gpu else None  # type: ignore[no-untyped-call]
        self.buffers, self._replays = self._made(capacity, width)

    def _made(self, capacity: int, width: int) -> tuple[Buffers, dict[int, Run]]:
        weights, capture = self._weights, self._capture
        buffers = make_buffers(weights, self._bias(capacity), capacity, width)

        def run_of(rows: int) -> Run:
            return capture(lambda: step(weights, buffers, rows))

        # All sizes at once, the largest first, so that the others find its memory in the pool; and so that no text
        # but a slot's first waits for a capture.
        return buffers, {rows: run_of(rows) for rows in reversed(SIZES)}

    def open(self, source: CrossCache) -> None:
        """Forget the last text and take in an encoded source, no longer than the slot's width."""
        buffers, length = self.buffers, source.states.shape[1]
        self.steps += 1
        for cleared in (buffers.keys, buffers.values, buffers.source_keys, buffers.source_values):
            cleared.zero_()
        buffers.source_mask.fill_(float("-inf"))
        buffers.source_mask[:, :, :length] = 0
        for index, (keys, values) in enumerate(zip(source.keys, source.values, strict=True)):
            buffers.source_keys[index, :, :, :length] = keys
            buffers.source_values[index, :, :length] = values

    def grow(self, capacity: int) -> None:
        """Make room for more positions of the target, keeping what is there; the steps are captured anew."""
        old = self.buffers
        self.buffers, self._replays = self._made(capacity, old.width)
        for grown, kept in ((self.buffers.keys, old.keys), (self.buffers.values, old.values)):
            grown.zero_()
            grown[:, :, : old.capacity] = kept
        for name in ("source_keys", "source_values", "source_mask"):
            getattr(self.buffers, name).copy_(getattr(old, name))

    def run(self, tokens: Sequence[int], start: int, following: int | None) -> None:
        """Feed 1 to `MOST` tokens at positions start, start + 1, …; nothing waits for the device.

        Args:
            tokens: ids.
            start: there must be room for `padded(len(tokens))` positions from here.
            following: the id that is fed after them, where that is known.
        """
        if self._sent is not None:
            # The last copy may not have read the staged ids yet, if nobody read its step's scores.
            self._sent.synchronize()
        staged = [start, *tokens, 0 if following is None else following]
        self._staged_ids[:] = staged + [0] * (2 + MOST - len(staged))
        self.buffers.inputs.copy_(self._staged, non_blocking=True)
        if self._sent is not None:
            # The event's own choice would be a stream of whichever GPU is current.
            self._sent.record(torch.cuda.current_stream(self.buffers.inputs.device))
        self.steps += 1
        self._replays[padded(len(tokens))]()

    @torch.inference_mode()
    def scores(self, count: int) -> list[list[float]]:
        """The step's one transfer to the host: `scores` of its first rows."""
        self._read[:count].copy_(self.buffers.scores[:count])
        found: list[list[float]] = self._read[:count].tolist()
        return found

    def logits(self, count: int) -> Tensor:
        """Scores of the step's first rows, [count, vocabulary]; the next step overwrites them."""
        return self.buffers.logits[:count]


def padded(rows: int) -> int:
    """The smallest size that this many rows fit in."""
    return next(size for size in SIZES if size >= rows)
