"""Files that come in numbered parts, as data sets and weights on the hub do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable


def incomplete_parts(names: Iterable[str]) -> str | None:
    """What is missing of files in numbered parts such as `test-00000-of-00002.parquet`; None when nothing is."""
    numbers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        match = re.fullmatch(r"(.*)-(\d+)-of-(\d+\..*)", name)
        if match is not None:
            numbers[match[1], match[3]].add(match[2])
    for (before, after), there in numbers.items():
        total = int(after.partition(".")[0])
        if len(there) != total:
            return f"{before}-*-of-{after} has {len(there)} of {total} parts"
    return None
