"""`bild-bench report`: from results to a decision."""

from __future__ import annotations

import json
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bild_bench.checks import folder
from bild_bench.cli import options as o
from bild_bench.errors import DataError

if TYPE_CHECKING:
    from bild_bench.report.collect import Group
    from bild_bench.report.export import Findings
    from bild_bench.report.report import Report

# What fits into a terminal's memory and a reader's.
_MOST_SECTIONS, _MOST_ROWS = 20, 40


class Format(StrEnum):
    """How the report is written to stdout."""

    TABLE = "table"
    PLOT = "plot"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    LATEX = "latex"


def report(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR]…",
            parser=partial(folder, "DIR"),
            help="Directories of results, searched at any depth. \\[results]",
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TABLE,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            parser=partial(folder, "--html", kind="file"),
            metavar="PATH",
            help="Write one self-contained HTML page.",
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            "--plots",
            parser=partial(folder, "--plots"),
            metavar="PATH",
            help="Write PNG and SVG plots into this folder.",
        ),
    ] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option("--max-drop", help="Fastest point at most this many points below vanilla; a list. \\[0,1]"),
    ] = None,
    min_speedup: Annotated[
        float | None, typer.Option("--min-speedup", help="Best quality at this decoding speed-up or more.")
    ] = None,
    log_to: o.LogToOption = None,
    together: Annotated[
        bool, typer.Option("--together", help="Compare all experiments in one section, over their common texts.")
    ] = False,
    draw: Annotated[
        bool | None,
        typer.Option("--draw/--no-draw", help="Draw a plot below each table. \\[in a terminal, from 3 points on]"),
    ] = None,
) -> None:
    """Show quality against speed-up of all experiments below DIR, one section per comparable set.

    Example: bild-bench report results --max-drop 0,1 --html report.html
    """
    from bild_bench.asked import drops_of
    from bild_bench.cli.console import announce, announce_finding
    from bild_bench.report.report import make_report
    from bild_bench.trackers import check_tracker, log_report

    if log_to is not None:
        check_tracker(log_to)
    paths = [Path("results")] if directories is None or len(directories) == 0 else directories
    made = make_report(paths, max_drops=drops_of(max_drop), min_speedup=min_speedup, together=together)
    _print(made, form, draw)
    for problem in made.damaged:
        announce_finding(f"left out: {problem}")
    if plots is not None:
        announce(f"plots written to {made.write_plots(plots)}")
    if html is not None:
        announce(f"page written to {made.write_page(html)}")
    if log_to is not None and made.groups:
        log_report(log_to, made, "report")
        announce(f"logged to {log_to}")
    if not made.groups:
        raise DataError("DIR", len(made.damaged), "files are damaged, and there are no others", "see above")


def _print(made: Report, form: Format, draw: bool | None) -> None:
    from bild_bench.cli.console import out

    if form is Format.CSV:
        out.file.write(made.to_csv())
    elif form is Format.LATEX:
        out.file.write(made.to_latex())
    elif form is Format.JSON:
        out.file.write(json.dumps(made.as_dict(), indent=2, allow_nan=False) + "\n")
    elif form is Format.MARKDOWN:
        out.file.write(made.to_markdown())
    else:
        for group in made.groups[:_MOST_SECTIONS]:
            if form is Format.TABLE:
                _print_group(group, made.findings(group))
            _draw_group(group, True if form is Format.PLOT else draw)
        if len(made.groups) > _MOST_SECTIONS:
            out.print(f"{len(made.groups) - _MOST_SECTIONS} more sections: name fewer DIRs, or take --format csv")


def _print_group(group: Group, found: Findings) -> None:
    from dataclasses import replace

    from rich.text import Text

    from bild_bench.cli.console import out
    from bild_bench.report.export import say
    from bild_bench.report.summary import Summary
    from bild_bench.report.table import print_lines, print_table

    out.print(Text(group.title, style="bold"), soft_wrap=not out.is_terminal)
    # Other experiments' baselines say nothing new: they go first where there is too much.
    order = sorted(group.entries, key=lambda entry: (not entry.front, entry.summary.role == "baseline"))
    entries = order[:_MOST_ROWS]
    kept = {id(entry) for entry in entries}
    points = tuple(
        replace(entry.summary, point=f"{'*' if entry.front else ' '} {entry.label}")
        for entry in group.entries
        if id(entry) in kept
    )
    print_table(out, Summary(group.run.experiment_id, points, found.warnings), group.run)
    lines = ["* on the strict front of quality and decoding speed-up, on these texts"]
    if len(group.entries) > len(points):
        lines.append(f"{len(group.entries) - len(points)} more points: --format csv has all")
    print_lines(out, [*lines, *map(say, found.answers), ""])


def _draw_group(group: Group, draw: bool | None) -> None:
    from bild_bench.cli.console import out
    from bild_bench.report.paper import metric_name
    from bild_bench.report.terminal_plot import Mark, scatter

    marks = [
        Mark(entry.label, entry.quality, entry.speedup)
        for entry in group.entries
        if entry.shown and entry.quality is not None and entry.speedup is not None
    ]
    wanted = out.is_terminal and len(marks) > 2 if draw is None else draw
    if wanted and marks:
        out.print(scatter(marks, metric_name(group.run.metric), width=min(60, out.width - 12)), soft_wrap=True)
        out.print()
