"""Where a command writes: results to stdout, progress and remarks to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bild_bench.data import Example
from bild_bench.quiet import stderr_console
from bild_bench.safe_console import SafeConsole

if TYPE_CHECKING:
    from bild_bench.next_commands import Next

out = SafeConsole()
err = stderr_console()


def announce(line: str) -> None:
    """One remark on stderr."""
    err.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)


def announce_finding(line: str) -> None:
    """What a command failed for: on stderr, with --quiet too."""
    SafeConsole(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)


def announce_next(following: Iterable[Next]) -> None:
    """Commands to paste, each whole on a line of its own, on stderr."""
    for step in following:
        announce(f"next, to {step.what}:")
        announce(f"  {step.command}")


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows as a table on stdout; where that is too wide, as a block of lines each: what is there to be copied, such as
    a hub id, is never cut or folded.

    Args:
        headings: the first is that of the row's name.
        rows: a cell for each heading, "-" where there is nothing to tell.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    # Text and not str: rich takes square brackets in a str for markup.
    table = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    if out.measure(table, options=out.options.update(width=10_000)).maximum <= out.width:
        out.print(table)
        return
    for name, *cells in rows:
        told = ((heading, cell) for heading, cell in zip(headings[1:], cells, strict=True) if cell != "-")
        lines = [name, *(f"  {heading}: {cell}" for heading, cell in told)]
        out.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


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
    with Progress(*columns, console=err, disable=err.quiet or not err.is_terminal) as progress:
        task = progress.add_task("decoding", total=total, completed=done)
        for text in texts:
            yield text
            progress.advance(task)
