"""Does a fresh run land within the intervals of the reference? python -m study.agree FRESH [REFERENCE]

Both are files that `make study` wrote. Their intervals are of 95 %, so that share of the figures must be within. A row
that was chosen on validation texts is compared with the fresh run's row of the same rule, whatever thresholds that
chose: the choice is part of what is repeated.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bild_bench.errors import BildBenchError
from study.rows import Row, load
from study.run import ROWS

REFERENCE = Path("results/reference")
FIGURES = ("quality", "speedup")
SHARE = 0.95


@dataclass(frozen=True)
class Outside:
    """A figure of the fresh run that is not within the reference's interval; value is None where it has no such row."""

    what: str
    figure: str
    value: float | None
    low: float
    high: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if 95 % of the figures are within the intervals, 1 if fewer are, 3 if a file cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m study.agree", description=__doc__)
    parser.add_argument("fresh", type=Path)
    parser.add_argument("reference", nargs="?", type=Path, default=REFERENCE / ROWS)
    given = parser.parse_args(arguments)
    try:
        fresh, reference = (load(path)[0] for path in (given.fresh, given.reference))
    except BildBenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    compared, outside = agreement(fresh, reference)
    for one in outside:
        value = "is missing" if one.value is None else f"{one.value:.3f}"
        print(f"{one.what}, {one.figure}: {value}, outside [{one.low:.3f}, {one.high:.3f}]")
    print(f"{compared - len(outside)} of {compared} figures are within the reference's intervals")
    # Nothing to compare is no agreement: a study of two texts has no intervals.
    return 0 if compared and compared - len(outside) >= SHARE * compared else 1


def agreement(fresh: Sequence[Row], reference: Sequence[Row]) -> tuple[int, list[Outside]]:
    """How many figures were compared, and which are not within the reference's intervals.

    Args:
        fresh, reference: rows of all trials.
    """
    new = {name: row for row in fresh for name in (f"{row.trial}: {row.point}", *_ruled(row))}
    compared, outside = 0, []
    for name, row in _named(reference):
        for figure in FIGURES:
            low, high = getattr(row, f"{figure}_low"), getattr(row, f"{figure}_high")
            # A baseline's speed-up has no width, and a peer may have none at all.
            if low is None or high is None or (row.method == "vanilla" and figure == "speedup"):
                continue
            compared += 1
            value = getattr(new[name], figure) if name in new else None
            if value is None or not low <= value <= high:
                outside.append(Outside(name, figure, value, low, high))
    return compared, outside


def _named(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Each row under every rule that it was chosen by; under its point's name where it was shown in any case."""
    for row in rows:
        for name in _ruled(row) or [f"{row.trial}: {row.point}"]:
            yield name, row


def _ruled(row: Row) -> list[str]:
    """A row's names, one per rule."""
    found = []
    for rule in filter(None, row.rules.split("; ")):
        parts = (row.method, row.small, json.loads(row.settings).get("measure", ""), rule)
        found.append(f"{row.trial}: {' '.join(part for part in parts if part)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
