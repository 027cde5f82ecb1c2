"""The one clock of all measurements: wall-clock seconds, read only after the device has finished its queued work."""

from __future__ import annotations

import time


def synchronise(device: str) -> None:
    """Waits until the device has done what was queued on it; on a CPU nothing is queued.

    Without it a timer stops when a kernel was launched, not when it was done.

    Args:
        device: a torch device, such as "cpu", "cuda", "cuda:1" or "mps".
    """
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize(device)
    elif device.startswith("mps"):
        import torch

        torch.mps.synchronize()


def now(device: str) -> float:
    """Seconds of a monotonic clock, after `synchronise(device)`; only differences mean anything."""
    synchronise(device)
    return time.perf_counter()
