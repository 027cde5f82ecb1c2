"""Where a command writes: results to stdout, progress and remarks to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bild_bench.data import Example

out = Console()
err = Console(stderr=True)


def announce(line: str) -> None:
    """One remark on stderr."""
    err.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)


def track(texts: Iterable[Example], done: int, total: int) -> Iterator[Example]:
    """A progress bar with the time left over the texts still to do; nothing where stderr is no terminal."""
    columns = (
        TextColumn("decoding"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("texts"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task("decoding", total=total, completed=done)
        for text in texts:
            yield text
            progress.advance(task)
