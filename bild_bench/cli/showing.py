"""Shows one experiment's figures: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bild_bench.next_commands import Next
    from bild_bench.plan import Point
    from bild_bench.report.summary import Summary
    from bild_bench.results import Experiment

    Follow = Callable[[Experiment, Summary], list[Next]]


def show(directory: Path, json_output: bool, follow: Follow | None = None) -> None:
    """Print the figures to stdout, and where they are and what may follow to stderr.

    Args:
        follow: the commands to paste, from the experiment and its figures; with JSON under "next".
    """
    from bild_bench import results
    from bild_bench.cli.console import announce, announce_next, out
    from bild_bench.report.summary import summarise
    from bild_bench.report.table import print_table, to_json

    experiment = results.read(directory)
    summary = summarise(experiment)
    following = [] if follow is None else follow(experiment, summary)
    label = experiment.run.data_label
    if label.startswith("embedded/"):
        announce(f"{label} is a stand-in of our own texts: never compare it with the named data set")
    # Said first: stdout may be full or closed, and the results are there all the same.
    announce(f"written to {directory}")
    if json_output:
        # Flushed at once: the command-line library ends quietly (code 1) where nobody reads any more.
        told = to_json(summary, experiment.run) | {"directory": str(directory)}
        if follow is not None:
            told["next"] = [asdict(step) for step in following]
        typer.echo(json.dumps(told, indent=2))
    else:
        print_table(out, summary, experiment.run)
    announce_next(following)


def log(tracker: str | None, directory: Path) -> None:
    """Log an experiment to a tracker, if one is named; after its figures are shown, which must not wait for a network.

    Raises:
        RunError: the tracker failed; the results are kept.
    """
    if tracker is not None:
        from bild_bench.cli.console import announce
        from bild_bench.trackers import log_experiment

        log_experiment(tracker, directory)
        announce(f"logged to {tracker}")


def show_plan(points: Sequence[Point], texts: int, seconds: float, json_output: bool) -> None:
    """Print the points of an experiment that is not run, and about how long it would take."""
    labels = [point.label for point in points]
    if json_output:
        typer.echo(json.dumps({"points": labels, "texts": texts, "estimated_seconds": seconds}, indent=2))
        return
    for label in labels:
        typer.echo(label)
    typer.echo(f"{len(labels)} points, the baseline among them; {texts} texts; about {seconds / 60:.1f} min")
