"""Progress of the decoding half: a bar on a terminal, with the time left; in a log a line for each shard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Item = TypeVar("Item")


def tracked(name: str, items: Sequence[Item], size: int, show: bool) -> Iterator[Item]:
    """The items, their progress shown on stderr.

    Args:
        size: texts of an item.
        show: whether to show it; of several processes only one does.
    """
    console, began = Console(stderr=True), time.monotonic()
    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"x {size} texts"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not show or not console.is_terminal) as progress:
        bar = progress.add_task(name, total=len(items))
        for number, item in enumerate(items, 1):
            yield item
            progress.advance(bar)
            if show and not console.is_terminal:
                left = (time.monotonic() - began) / number * (len(items) - number) / 60
                console.print(f"{name}: {number:,} of {len(items):,} x {size} texts, about {left:.1f} min left")
