"""bild-bench: measures big/little decoding of sequence-to-sequence models.

In a notebook: `from bild_bench import load_pair, generate, run, sweep, tune, report, compare`; see docs/PYTHON.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bild_bench.api import generate, load_pair
    from bild_bench.api_experiments import compare, report, run, sweep, tune

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "generate", "load_pair", "report", "run", "sweep", "tune"]


def __getattr__(name: str) -> Any:
    """Import the interface for notebooks only when it is used: the command line must start without torch."""
    if name in ("generate", "load_pair"):
        from bild_bench import api

        return getattr(api, name)
    if name == "report":
        # The package of that name, which can be called; importing a part of it puts it here anyway.
        from importlib import import_module

        return import_module("bild_bench.report")
    if name in ("compare", "run", "sweep", "tune"):
        from bild_bench import api_experiments

        return getattr(api_experiments, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
