"""A comparison with the verdict on it: what was lost beyond the limits, and what could not be tested."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench.report.compare import Comparison, compare
from bild_bench.report.compare_table import to_json
from bild_bench.report.regressions import Limits, Regression, parse_limits, regressions, untested

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Compared:
    """Two results side by side.

    Args:
        comparison: all that both have in common, and what only one has.
        limits: what B may lose.
        regressions: losses beyond the limits; see the module `regressions`.
        untested: limits that could not be tested, one line each.
    """

    comparison: Comparison
    limits: Limits
    regressions: tuple[Regression, ...]
    untested: tuple[str, ...]

    @property
    def summary(self) -> pd.DataFrame:
        """One row per point that both have: a, b (directories), then the point's figures of both, flat.

        A figure in several parts has one column per part, named with dots: quality.difference.low.
        """
        import pandas as pd

        rows = [
            {"a": section["a"], "b": section["b"], "data": section["data_label"], **point}
            for section in self.as_dict()["sections"]
            for point in section["points"]
        ]
        return pd.json_normalize(rows)

    def as_dict(self) -> dict[str, Any]:
        """Everything as strict JSON values, as `--json` prints it."""
        return to_json(self.comparison, self.regressions, self.untested)

    def __repr__(self) -> str:
        points = sum(len(section.points) for section in self.comparison.sections)
        only = len(self.comparison.only_a) + len(self.comparison.only_b)
        return f"Compared({points} points of both, {only} of one only, {len(self.regressions)} regressions)"


def compare_results(a: Path, b: Path, fail_on: str | None) -> Compared:
    """Compare B with A, and test what it lost.

    Args:
        fail_on: such as "quality:0.5,speed:5%"; None for no limits.

    Raises:
        UsageError: limits that cannot be read, or a path that is not a directory.
        DataError: nothing can be compared.
    """
    limits = Limits() if fail_on is None else parse_limits(fail_on)
    comparison = compare(a, b)
    return Compared(comparison, limits, tuple(regressions(comparison, limits)), tuple(untested(comparison, limits)))
