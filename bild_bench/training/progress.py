"""Progress of the decoding half: a bar on a terminal, with the time left; in a log a line for each shard."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence, Sized
from typing import Protocol, TypeVar

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bild_bench.quiet import stderr_console


class Portion(Protocol):
    """Texts that are done together, such as a shard."""

    @property
    def examples(self) -> Sized: ...


Item = TypeVar("Item", bound=Portion)


def tracked(name: str, items: Sequence[Item], show: bool = True) -> Iterator[Item]:
    """The items, their progress shown on stderr in texts.

    Args:
        items: this process's own.
        show: whether to show it; of several processes only one does, and tells its own share.
    """
    console, began, world = stderr_console(), time.monotonic(), int(os.environ.get("WORLD_SIZE", "1"))
    title = name if world == 1 else f"{name}, one of {world} processes"
    columns = (
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} texts"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    done, total = 0, sum(len(item.examples) for item in items)
    with Progress(*columns, console=console, disable=not show or console.quiet or not console.is_terminal) as progress:
        bar = progress.add_task(title, total=total)
        for item in items:
            yield item
            done += len(item.examples)
            progress.update(bar, completed=done)
            if show and not console.is_terminal:
                left = (time.monotonic() - began) / done * (total - done) / 60
                line = f"{title}: {done:,} of {total:,} texts, about {left:.1f} min left"
                console.print(line, markup=False, soft_wrap=True)
