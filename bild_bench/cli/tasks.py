"""`bild-bench tasks`: which tasks there are."""

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
    from rich import box
    from rich.table import Table

    from bild_bench.cli.console import out

    table = Table("task", "what", "hub data set", "metric", "limits", "embedded", box=box.SIMPLE_HEAD, pad_edge=False)
    for task in found:
        limits, sample = f"{task.source_limit} / {task.target_limit}", "no" if task.embedded is None else "yes"
        table.add_row(task.name, task.title, task.hub_id or "-", task.metric, limits, sample)
    out.print(table)
