"""Turns a step into a CUDA graph: one launch for all its kernels, with the addresses and shapes of the capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Run = Callable[[], None]
# A step -> the same step as a replay.
Capture = Callable[[Run], Run]

# Libraries choose algorithms and allocate workspaces at their first calls, which a capture does not allow.
_WARM_UPS = 3


def cuda_capture(device: torch.device) -> Capture:
    """Captures steps on one device.

    All graphs share one memory pool for what lies between a step's operations: nothing in it outlives a step, since
    results are copied to buffers outside it, and steps run one after the other.

    Args:
        device: a CUDA device. A capture raises what torch raises: RuntimeError, or its OutOfMemoryError.
    """
    pool: Any = torch.cuda.graph_pool_handle()
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def captured(run: Run) -> Run:
        main = torch.cuda.current_stream(device)
        # A capture that fails leaves its side stream current; this context puts the former one back all the same.
        with torch.cuda.device(device), torch.cuda.stream(main):
            side.wait_stream(main)
            with torch.cuda.stream(side):
                for _ in range(_WARM_UPS):
                    run()
            main.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=side):
                run()
        return graph.replay

    return captured


def eagerly(run: Run) -> Run:
    """No capture: the step itself."""
    return run
