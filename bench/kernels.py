"""What a device does while greedy search runs: its share of the time, launches, transfers and allocations per token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from bench.baselines import limits_of, our_encodings
from bench.figures import Figure
from bench.shapes import Subject
from bild_bench.decoding.alone import AloneSettings, vanilla
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.session import Sessions
from bild_bench.measure.clock import now

_LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch")
_SHOWN = 3
_NAME = 40


@dataclass(frozen=True)
class Event:
    """All calls of one name: on the device or on the host; microseconds of their own on the device."""

    name: str
    on_device: bool
    count: int
    device_us: float


def profile_figure(subject: Subject, label: str) -> Figure:
    """The device's share of one text's greedy search: kernel time by torch.profiler over the time without it.

    Args:
        subject: with a large model.
        label: shape and dtype.
    """
    text, device = subject.texts[0], subject.pair.device
    limits, encoded = limits_of(subject, subject.tokens), our_encodings(subject, ("large",))(text)

    def decode() -> int:
        session = subject.pair.session("large", encoded["large"], limits)
        return len(vanilla(Sessions(large=session), AloneSettings(), limits, Greedy()).tokens)

    decode()
    before, start = _allocations(device), now(device)
    tokens = decode()
    seconds, allocated = now(device) - start, _allocations(device) - before
    on_gpu = device.startswith("cuda")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as profiled:
        decode()
        now(device)
    return row_of(label, _events(profiled), tokens, seconds, allocated)


def row_of(label: str, events: Sequence[Event], tokens: int, seconds: float, allocated: int) -> Figure:
    """The figure from a profile.

    Args:
        label: shape and dtype.
        events: of the text, under the profiler.
        tokens: that were generated.
        seconds: that the text takes without the profiler.
        allocated: blocks of device memory that it asked for.
    """
    kernels = sorted((event for event in events if event.on_device), key=lambda event: -event.device_us)
    busy = sum(event.device_us for event in kernels)
    launches = sum(event.count for event in events if event.name in _LAUNCHES)
    reads = sum(event.count for event in kernels if event.name.startswith("Memcpy DtoH"))
    parts = [
        f"{launches / tokens:.1f} launches, {reads / tokens:.1f} reads by the host and "
        f"{allocated / tokens:.1f} allocations per token",
        *(f"{event.name[:_NAME]} {100 * event.device_us / busy:.0f} %" for event in kernels[:_SHOWN] if busy),
    ]
    share, note = busy / (1e6 * seconds), "; ".join(parts)
    return Figure("GPU busy", label, "vanilla", share, None, None, None, "at least", None, "share", 1, note)


def _events(profiled: Any) -> list[Event]:
    return [
        Event(event.key, event.device_type.name != "CPU", event.count, float(event.self_device_time_total))
        for event in profiled.key_averages()
    ]


def _allocations(device: str) -> int:
    """Blocks that torch's allocator has handed out so far on a GPU; 0 elsewhere."""
    if not device.startswith("cuda"):
        return 0
    return int(torch.cuda.memory_stats(device).get("allocation.all.allocated", 0))
