"""`bild-bench tasks`: the known tasks."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from bild_bench.cli import options as o


def tasks(json_output: o.JsonOption = False) -> None:
    """List the tasks: data set, metric, limits, and whether a sample comes with the package."""
    from bild_bench.tasks import load_task, task_names

    found = [load_task(name) for name in task_names()]
    if json_output:
        typer.echo(json.dumps([asdict(task) for task in found], indent=2))
        return
    from bild_bench.cli.console import print_rows

    rows = []
    for task in found:
        limits, sample = f"{task.source_limit} / {task.target_limit}", "no" if task.embedded is None else "yes"
        hub_id = "-" if task.hub_id is None else task.hub_id
        rows.append((task.name, task.title, hub_id, task.metric, limits, sample))
    print_rows(("task", "what", "hub data set", "metric", "limits", "embedded"), rows)
