"""`bild-bench report`: from results to a decision."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bild_bench.errors import DataError, UsageError

if TYPE_CHECKING:
    from bild_bench.report.collect import Collected, Group
    from bild_bench.report.export import Findings

# What fits into a terminal's memory and a reader's.
_MOST_SECTIONS, _MOST_ROWS = 20, 40


class Format(StrEnum):
    """How the report is written to stdout."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


def report(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]…", help="Directories of results, searched at any depth. \\[results]"),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TABLE,
    html: Annotated[Path | None, typer.Option("--html", help="Write one self-contained HTML page.")] = None,
    plots: Annotated[Path | None, typer.Option("--plots", help="Write PNG and SVG plots into this folder.")] = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option("--max-drop", help="Fastest point at most this many points below vanilla; a list. \\[0,1]"),
    ] = None,
    min_speedup: Annotated[
        float | None, typer.Option("--min-speedup", help="Best quality at this decoding speed-up or more.")
    ] = None,
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
    from bild_bench.report.collect import collect

    drops = _drops(["0,1"] if max_drop is None else max_drop)
    if min_speedup is not None and not 0 < min_speedup < float("inf"):
        raise UsageError("--min-speedup", min_speedup, "must be more than 0", "try 1.5")
    paths = [Path("results")] if directories is None or len(directories) == 0 else directories
    collected = collect(paths, together=together)
    if not collected.groups and not collected.damaged:
        where = ", ".join(str(path) for path in paths)
        raise DataError("DIR", where, "holds no results", "run an experiment first: bild-bench run --task iwslt17")
    _print(collected, form, drops, min_speedup, draw)
    _tell_damaged(collected)
    if plots is not None:
        _write_plots(collected, plots)
    if html is not None:
        _write_page(collected, html, drops, min_speedup)
    if not collected.groups:
        raise DataError("DIR", len(collected.damaged), "files are damaged, and no others are there", "see above")


def _drops(given: list[str]) -> list[float]:
    """Each value once, in the order given: the option may be repeated and takes lists, as that of `tune`."""
    from bild_bench.grid import parse_numbers

    drops = [float(drop) for text in given for drop in parse_numbers("--max-drop", text, whole=False)]
    for drop in drops:
        if not 0 <= drop < float("inf"):
            raise UsageError("--max-drop", drop, "must be 0 or more points of quality", "try 0,1")
    return list(dict.fromkeys(drops))


def _print(
    collected: Collected, form: Format, drops: list[float], min_speedup: float | None, draw: bool | None
) -> None:
    from bild_bench.cli.console import out
    from bild_bench.report import export

    if form is Format.CSV:
        out.file.write(export.to_csv(collected))
        return
    shown = collected.groups[:_MOST_SECTIONS] if form is Format.TABLE else collected.groups
    findings = [_findings(group, drops, min_speedup) for group in shown]
    if form is Format.JSON:
        out.file.write(json.dumps(export.to_strict_json(collected, findings), indent=2, allow_nan=False) + "\n")
    elif form is Format.MARKDOWN:
        out.file.write(export.to_markdown(collected, findings))
    else:
        for group, found in zip(shown, findings, strict=True):
            _print_group(group, found)
            _draw_group(group, draw)
        if len(shown) < len(collected.groups):
            out.print(f"{len(collected.groups) - len(shown)} more sections: name fewer DIRs, or take --format csv")


def _findings(group: Group, drops: list[float], min_speedup: float | None) -> Findings:
    from bild_bench.report.answers import answers, sample_reader
    from bild_bench.report.cautions import COLUMNS, cautions
    from bild_bench.report.export import Findings

    try:
        found = answers(group, max_drops=drops, min_speedup=min_speedup, samples=sample_reader())
        return Findings(found, cautions(group, sample_reader(COLUMNS)))
    except DataError as error:
        return Findings([], [f"neither answers nor warnings: {error}"])


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


def _tell_damaged(collected: Collected) -> None:
    from bild_bench.cli.console import announce

    for problem in collected.damaged:
        announce(f"left out: {problem}")


def _write_plots(collected: Collected, folder: Path) -> None:
    from bild_bench.cli.console import announce
    from bild_bench.parquet import writing
    from bild_bench.report import charts

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for number, group in enumerate(collected.groups, start=1):
            specs = {"pareto": charts.pareto(group), "heatmaps": charts.heatmaps(group)}
            for name, spec in specs.items():
                if spec is not None:
                    stem = f"{number:02d}-{group.run.task}-{name}".replace("/", "-")
                    (folder / f"{stem}.png").write_bytes(charts.png(spec))
                    (folder / f"{stem}.svg").write_text(charts.svg(spec), encoding="utf-8")
    announce(f"plots written to {folder}")


def _write_page(collected: Collected, path: Path, drops: list[float], min_speedup: float | None) -> None:
    from bild_bench.cli.console import announce
    from bild_bench.parquet import writing
    from bild_bench.report.page import write_page

    with writing(path):
        write_page(collected, path, max_drops=drops, min_speedup=min_speedup)
    announce(f"page written to {path}")
