"""Shows one experiment's figures: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bild_bench.plan import Point


def show(directory: Path, json_output: bool) -> None:
    """Print the figures to stdout, and where they are to stderr."""
    from bild_bench import results
    from bild_bench.cli.console import announce, out
    from bild_bench.report.summary import summarise
    from bild_bench.report.table import print_table, to_json

    experiment = results.read(directory)
    summary = summarise(experiment)
    label = experiment.run.data_label
    if label.startswith("embedded/"):
        announce(f"{label} is a stand-in of our own texts: never compare it with the named data set")
    # Said first: stdout may be full or closed, and the results are there all the same.
    announce(f"written to {directory}")
    if json_output:
        # Flushed at once: the command-line library ends quietly (code 1) where nobody reads any more.
        typer.echo(json.dumps(to_json(summary, experiment.run) | {"directory": str(directory)}, indent=2))
    else:
        print_table(out, summary, experiment.run)


def show_plan(points: Sequence[Point], texts: int, seconds: float, json_output: bool) -> None:
    """Print the points of an experiment that is not run, and about how long it would take."""
    labels = [point.label for point in points]
    if json_output:
        typer.echo(json.dumps({"points": labels, "texts": texts, "estimated_seconds": seconds}, indent=2))
        return
    for label in labels:
        typer.echo(label)
    typer.echo(f"{len(labels)} points, the baseline among them; {texts} texts; about {seconds / 60:.1f} min")
