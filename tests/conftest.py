"""What holds for every test."""

from __future__ import annotations

import sys

import hypothesis
import pytest

# A slow machine is no failure.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def one_torch_thread() -> None:
    """One thread, so that tests side by side do not fight; torch is not imported where a test does without it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)
