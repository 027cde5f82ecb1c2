"""`bild-bench list`: which experiments there are."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bild_bench.checks import folder
from bild_bench.printable import one_line

if TYPE_CHECKING:
    from bild_bench.past import Past


def list_past(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULTS]…",
            parser=partial(folder, "RESULTS"),
            help="Directories of results, searched at any depth. \\[results]",
        ),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """List past experiments, newest first: date, task, pair, points, texts, status, directory.

    A damaged experiment is listed with the reason.

    Example: bild-bench list results
    """
    from bild_bench.cli.console import announce, print_rows
    from bild_bench.past import past_experiments

    paths = [Path("results")] if directories is None or len(directories) == 0 else directories
    # Before the first experiment there is no such folder, and nothing is wrong with that.
    none_yet = directories is None or len(directories) == 0
    found = [] if none_yet and not paths[0].exists() else past_experiments(paths)
    if json_output:
        typer.echo(json.dumps([past.as_dict() for past in found], indent=2))
    elif found:
        headings = ("started (UTC)", "task", "pair", "points", "texts", "status", "directory")
        print_rows(headings, map(_cells, found))
    if not found:
        where = ", ".join(str(path) for path in paths)
        announce(f"no experiments below {where}; run one first: bild-bench run --task iwslt17")


def _cells(past: Past) -> tuple[str, ...]:
    started = "-" if past.started is None else f"{past.started:%Y-%m-%d %H:%M}"
    data, pair = ("-" if value is None else value for value in (past.data, past.pair))
    texts = "-" if past.texts is None else str(past.texts)
    cells = (started, data, pair, _points(past.points), texts, past.told, str(past.directory))
    # Whatever a file says, it is one line and nothing that a terminal obeys.
    return tuple(map(one_line, cells))


def _points(labels: tuple[str, ...] | None) -> str:
    """How many, and a single one beside vanilla by its name."""
    if labels is None:
        return "-"
    others = [label for label in labels if label != "vanilla"]
    return others[0] if len(others) == 1 else str(len(labels))
