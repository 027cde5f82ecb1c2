"""From results to a decision: figures, tables, plots and the page. `bild_bench.report()` is `api_experiments.report`.

Python binds the name of a package's part in the package whenever any module of that part is imported, over a function
of the same name; so the part itself can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    @property
    def __signature__(self) -> Any:
        from inspect import signature

        from bild_bench.api_experiments import report

        return signature(report)

    def __call__(self, *directories: Any, **options: Any) -> Any:
        """See `api_experiments.report`."""
        from bild_bench.api_experiments import report

        return report(*directories, **options)


sys.modules[__name__].__class__ = _Callable
