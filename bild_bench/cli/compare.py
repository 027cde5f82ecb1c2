"""`bild-bench compare A B`: before and after a change, or two machines, and a gate for regressions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Results before: an experiment, or a folder of some.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Results after, or of the other machine.")],
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="LIMITS",
            help="Exit 1 where B lost more: any of quality:POINTS, speed:PERCENT, time:PERCENT, with commas between.",
        ),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Set two results side by side: what differs in configuration, quality and speed, point by point.

    Points of the same method and settings are compared over the texts that both decoded; what only one has is listed.

    --fail-on counts a loss that is more than its limit AND whose whole 95 % interval lies on the losing side of 0:

    quality:0.5 - half a point of the metric, B against A.

    speed:5% - of the speed-up over the own baseline, decoding and total; on any machine, steadier than seconds.

    time:10% - more seconds than A, decoding and total; tested only where the machine is the same.

    Intervals cover the choice of texts, not changes between two runs: set limits above what a repeated run shows.

    Exit codes: 0; 1 for regressions, one line each on stderr; 2 for usage; 3 where nothing can be compared.

    Example: bild-bench compare results/before results/after --fail-on quality:0.5,speed:5%
    """
    from bild_bench.cli.console import announce, out
    from bild_bench.report.compare import compare as compare_sets
    from bild_bench.report.compare_table import print_comparison, to_json
    from bild_bench.report.regressions import Limits, parse_limits, regressions, untested

    limits = Limits() if fail_on is None else parse_limits(fail_on)
    comparison = compare_sets(a, b)
    found, blind = regressions(comparison, limits), untested(comparison, limits)
    if json_output:
        typer.echo(json.dumps(to_json(comparison, found, blind), indent=2, allow_nan=False))
    else:
        print_comparison(out, comparison)
    for problem in comparison.damaged:
        announce(f"left out: {problem}")
    for line in blind:
        announce(line)
    for regression in found:
        announce(f"regression: {regression.line}")
    if found:
        raise typer.Exit(1)
