"""What the bench's tests share: a small shape, a row, a machine, and a clock that says what it is told."""

from __future__ import annotations

from typing import Any

import pytest

from bench import shapes
from bench.figures import Figure
from bench.interleave import Turn

TINY = {**shapes.T5, "vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_heads": 2, "num_layers": 2}
ROW = Figure("vanilla", "t5", "over x", 3.0, 2.5, 3.5, 2.0, "at least", True, "x", 2, "a|b")
VERSIONS = {"torch": "2.13.0", "transformers": "5.24.0", "ctranslate2": None}
MACHINE = {"cpu_model": "a CPU", "cores": 2, "threads": 2, "busy": None}
ENVIRONMENT: dict[str, Any] = {**VERSIONS, **MACHINE, "git_revision": "0123456789abcdef", "git_dirty": False}


def clock(monkeypatch: pytest.MonkeyPatch, *readings: float) -> None:
    """What `perf_counter` says, call by call."""
    times = iter(readings)
    monkeypatch.setattr("time.perf_counter", lambda: next(times))


def quiet(line: str) -> None:
    pass


def turns(*seconds: float, tokens: tuple[int, ...] = (5, 6, 1)) -> list[Turn]:
    return [Turn(value, tokens) for value in seconds]
