"""A stand-in for CUDA graphs on the CPU: a capture records a step's operations, a replay repeats them blindly.

Like a CUDA graph, a replay runs no Python of the step: each operation gets the very tensors of the capture (their
memory as it is then) and its result is written where the capture's result lay. What the step decided in Python, or put
into a fresh tensor from the host, stays what it was at the capture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Operations that wait for the device, or make a tensor out of what the host knows: no CUDA graph can hold them.
_FORBIDDEN = ("_local_scalar_dense", "nonzero", "lift_fresh", "masked_select", "_to_copy.cpu")


@dataclass
class Recording(TorchDispatchMode):
    """The operations of one step, in order."""

    operations: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, found))
        return found

    def replay(self) -> None:
        for func, args, kwargs, before in self.operations:
            now = func(*args, **kwargs)
            for old, new in zip(tensors(before), tensors(now), strict=True):
                # Views and operations in place have written, or look, where the capture's result lies.
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)

    def names(self) -> list[str]:
        return [str(func) for func, *_ in self.operations]

    def outside(self) -> set[int]:
        """Storages that the step reads or writes and did not make itself."""
        made: set[int] = set()
        found: set[int] = set()
        for _, args, kwargs, result in self.operations:
            found |= {storage(tensor) for tensor in tensors((args, kwargs))} - made
            made |= {storage(tensor) for tensor in tensors(result)} - found
        return found


class FakeCapture:
    """See `graphs.capture.Capture`; all that was captured and replayed is kept."""

    def __init__(self) -> None:
        self.recordings: list[Recording] = []
        self.replays = 0

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        recording = Recording()
        with torch.inference_mode(), recording:
            run()
        forbidden = [name for name in recording.names() if any(word in name for word in _FORBIDDEN)]
        assert not forbidden, forbidden
        self.recordings.append(recording)

        def replay() -> None:
            self.replays += 1
            recording.replay()

        return replay


def tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
