"""Shows one experiment's figures: a table for people, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def show(directory: Path, json_output: bool) -> None:
    """Print the figures to stdout, and where they are to stderr."""
    from bild_bench import results
    from bild_bench.cli.console import announce, out
    from bild_bench.report.summary import summarise
    from bild_bench.report.table import print_table, to_json

    experiment = results.read(directory)
    summary = summarise(experiment)
    if json_output:
        # Flushed at once: the command-line library ends quietly (code 1) where nobody reads any more.
        typer.echo(json.dumps(to_json(summary, experiment.run) | {"directory": str(directory)}, indent=2))
    else:
        print_table(out, summary, experiment.run)
    label = experiment.run.data_label
    if label.startswith("embedded/"):
        announce(f"{label} is a stand-in of our own sentences: never compare it with the named data set")
    announce(f"written to {directory}")
