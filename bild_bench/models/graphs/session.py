"""The graphs session: the T5 decoder on CUDA as captured steps of fixed shape; elsewhere the same steps eagerly."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from bild_bench.errors import RunError
from bild_bench.models.fast import FastModel
from bild_bench.models.graphs.capture import Capture, cuda_capture, eagerly
from bild_bench.models.graphs.rows import Block, GraphRows
from bild_bench.models.graphs.slot import Slot, in_blocks, padded
from bild_bench.models.graphs.step import MOST
from bild_bench.models.t5_decoder import CrossCache

# Tokens that a session makes room for where nobody says how long a text may be.
_ROOM = 128


class GraphModel:
    """A T5-family checkpoint whose steps are replayed as CUDA graphs; weights and slots are shared by its sessions.

    Whether steps can be captured here is found out at once, with a slot for short texts. Where they cannot, the same
    steps run eagerly, `kind` says so and `why_eager` has the reason. A capture that fails later, when a longer text
    needs a slot, is that text's error: one run never mixes captured and eager steps.

    Args:
        fast: the model; it goes on running layers one by one for CALM and for early exit, which are never captured.
    """

    def __init__(self, fast: FastModel) -> None:
        self.fast, self.device, self.depth = fast, fast.device, fast.depth
        self.exit_classifier = fast.exit_classifier
        self.why_eager: str | None = None
        self._capture: Capture = eagerly
        self._free: dict[int, list[Slot]] = {}
        self._choose()

    @property
    def kind(self) -> str:
        """graphs, or graphs-eager where nothing is captured."""
        return "graphs" if self.why_eager is None else "graphs-eager"

    @torch.inference_mode()
    def _choose(self) -> None:
        """Capture if that works here, and remember why not if it does not."""
        if self.device.type != "cuda":
            self.why_eager = f"no CUDA graphs on {self.device.type}"
            return
        try:
            self._capture = cuda_capture(self.device)
            self.give_back(self._new_slot(in_blocks(_ROOM + MOST), in_blocks(1)))
        except RuntimeError as error:
            self._capture, self.why_eager = eagerly, f"a step cannot be captured here: {_one_line(error)}"

    def encode(self, source: Tensor) -> CrossCache:
        """Run the encoder and project its output for the decoder; source ids have shape [1, length]."""
        return self.fast.encode(source)

    @torch.inference_mode()
    def session(self, source: CrossCache, room: int = _ROOM) -> GraphSession:
        """A fresh session that reads an encoded source.

        Args:
            source: of `encode`.
            room: tokens that the text may have; more of them cost a capture in the middle of the text.

        Raises:
            RunError: a step for a source of that length cannot be captured.
        """
        slot = self._borrow(in_blocks(room + MOST), in_blocks(source.states.shape[1]))
        session = GraphSession(self, slot)
        weakref.finalize(session, self.give_back, slot).atexit = False
        slot.open(source)
        return session

    def give_back(self, slot: Slot) -> None:
        """For the next session with a source of its width."""
        self._free.setdefault(slot.buffers.width, []).append(slot)

    def grow(self, slot: Slot, capacity: int) -> None:
        """More room in a slot.

        Raises:
            RunError: the steps cannot be captured anew.
        """
        try:
            slot.grow(capacity)
        except RuntimeError as error:
            raise _uncaptured(error, capacity) from error

    def _borrow(self, capacity: int, width: int) -> Slot:
        free = self._free.get(width)
        if not free:
            try:
                return self._new_slot(capacity, width)
            except RuntimeError as error:
                raise _uncaptured(error, capacity) from error
        slot = free.pop()
        if slot.buffers.capacity < capacity:
            try:
                self.grow(slot, capacity)
            except RunError:
                self.give_back(slot)
                raise
        return slot

    def _new_slot(self, capacity: int, width: int) -> Slot:
        return Slot(self.fast.weights, self.fast.causal_bias, self._capture, capacity, width)


class GraphSession:
    """See `decoding.session.Session`."""

    def __init__(self, model: GraphModel, slot: Slot) -> None:
        self._model, self._slot = model, slot
        self.length = 0

    @torch.inference_mode()
    def extend(self, tokens: Sequence[int]) -> GraphRows:
        count = len(tokens)
        # Padding has positions too.
        needed = self.length + (count // MOST) * MOST + (padded(count % MOST) if count % MOST else 0)
        if needed > self._slot.buffers.capacity:
            self._model.grow(self._slot, in_blocks(needed))
        block = self._one_step(tokens) if count <= MOST else self._several_steps(tokens)
        self.length += count
        return GraphRows(block, range(count))

    def truncate(self, length: int) -> None:
        self.length = min(length, self.length)

    def _one_step(self, tokens: Sequence[int]) -> Block:
        slot, count = self._slot, len(tokens)
        slot.run(tokens, self.length, None)
        steps = slot.steps
        return Block(tuple(tokens), lambda: slot.scores(count), lambda: slot.logits(count), lambda: slot.steps == steps)

    def _several_steps(self, tokens: Sequence[int]) -> Block:
        """More tokens than a step has rows; each step's scores are copied before the next one writes over them."""
        slot, scores, logits = self._slot, [], []
        for start in range(0, len(tokens), MOST):
            fed, later = tokens[start : start + MOST], tokens[start + MOST :]
            slot.run(fed, self.length + start, later[0] if later else None)
            scores.append(slot.buffers.scores[: len(fed)].clone())
            logits.append(slot.logits(len(fed)).clone())
        return Block(tuple(tokens), lambda: torch.cat(scores).tolist(), lambda: torch.cat(logits), lambda: True)


def _uncaptured(error: RuntimeError, capacity: int) -> RunError:
    return RunError(
        "CUDA graphs",
        capacity,
        f"no step for this many tokens can be captured ({_one_line(error)})",
        "use --session fast, or shorter texts",
    )


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
