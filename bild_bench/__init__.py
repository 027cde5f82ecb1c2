"""bild-bench: measures big/little decoding of sequence-to-sequence models.

In a notebook: `from bild_bench import generate, load_pair, run`; see `bild_bench.api`.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "generate", "load_pair", "run"]


def __getattr__(name: str) -> Any:
    """Import the interface for notebooks only when it is used: the command line must start without torch."""
    if name in ("generate", "load_pair", "run"):
        from bild_bench import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
