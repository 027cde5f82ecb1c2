"""`bild-bench presets`: the known pairs of models."""

from __future__ import annotations

import json

import typer

from bild_bench.cli import options as o


def presets(json_output: o.JsonOption = False) -> None:
    """List the model pairs by preset and task: checkpoints, sizes, prefixes."""
    from bild_bench.models.choice import load_presets

    found = load_presets()
    if json_output:
        typer.echo(json.dumps(found, indent=2))
        return
    from rich.text import Text

    from bild_bench.cli.console import out, print_rows

    headings = ("task", "large", "small", "aligned small", "prefix", "GB")
    for name, preset in found.items():
        rows = []
        for task, entry in preset["tasks"].items():
            if entry is None:
                rows.append((task, "none yet", *["-"] * 4))
                continue
            models = [entry["large"], entry["small"], entry["aligned"]]
            names = ["-" if model is None else model.get("id", model.get("path")) for model in models]
            size = sum(model.get("approx_gb", 0) for model in models[:2])
            rows.append((task, *names, repr(entry["prefix"]), f"{size:.1f}" if size else "-"))
        out.print(Text(f"{name}: {preset['title']}", style="bold"), soft_wrap=True)
        print_rows(headings, rows)
        out.print()
