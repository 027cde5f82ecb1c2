"""`bild-bench compare A B`: before and after a change, or two machines, and a gate for regressions."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bild_bench.checks import folder


def compare(
    a: Annotated[
        Path,
        typer.Argument(
            metavar="A", parser=partial(folder, "A"), help="Results before: an experiment, or a folder of some."
        ),
    ],
    b: Annotated[
        Path, typer.Argument(metavar="B", parser=partial(folder, "B"), help="Results after, or of the other machine.")
    ],
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="LIMITS",
            help="Exit with code 1 if B is worse by more than: quality:POINTS,speed:PERCENT,time:PERCENT.",
        ),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Compare two results point by point: configuration, quality and speed.

    Points with the same method and settings are compared over their common texts; the others are listed.

    --fail-on reports a loss that exceeds its limit AND whose whole 95 % interval lies on the losing side of 0:

    quality:0.5 - B is more than half a point of the metric below A.

    speed:5% - B's speed-up over its own baseline is more than 5 % lower, decoding or total; works across machines.

    time:10% - B takes more than 10 % more seconds, decoding or total; tested only on the same machine.

    Intervals cover the choice of texts, not variation from run to run: set limits above what repeating a run shows.

    Exit codes: 0 no regression; 1 regressions, one line each on stderr; 2 usage; 3 nothing can be compared.

    Example: bild-bench compare results/before results/after --fail-on quality:0.5,speed:5%
    """
    from bild_bench.cli.console import announce, announce_finding, out
    from bild_bench.report.compare_table import print_comparison
    from bild_bench.report.compared import compare_results

    found = compare_results(a, b, fail_on)
    if json_output:
        typer.echo(json.dumps(found.as_dict(), indent=2, allow_nan=False))
    else:
        print_comparison(out, found.comparison)
    for problem in found.comparison.damaged:
        announce_finding(f"left out: {problem}")
    for line in found.untested:
        announce_finding(line)
    for regression in found.regressions:
        announce_finding(f"regression: {regression.line}")
    if found.regressions:
        raise typer.Exit(1)
    if fail_on is not None:
        announce(f"no regression beyond {fail_on}")
