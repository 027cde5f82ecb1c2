"""Rewrites the table of docs/PERFORMANCE.md from Parquet files of `bench.cpu`: python -m bench.table [PARQUET …]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure, holds, load
from bild_bench.errors import BildBenchError, DataError

BEGIN, END = "<!-- bench: table -->", "<!-- bench: end -->"
RESULTS, PAGE = Path("results/bench"), Path("docs/PERFORMANCE.md")
_HEADER = ("what", "shape", "contestant", "figure", "95 % interval", "target", "reached", "notes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 3 after one line that says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.table", description=__doc__)
    parser.add_argument("parquet", nargs="*", type=Path, help="one table each; the newest of results/bench by default")
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    try:
        tables = [markdown(*load(path)) for path in given.parquet or [newest(RESULTS)]]
        page = given.page.read_text(encoding="utf-8")
        given.page.write_text(rewritten(page, "\n\n".join(tables)), encoding="utf-8")
    except BildBenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}; name a page with --page", file=sys.stderr)
        return 3
    return 0


def newest(folder: Path) -> Path:
    """The last Parquet file by its name, which is its date.

    Raises:
        DataError: there is none.
    """
    found = sorted(folder.glob("*.parquet"))
    if not found:
        raise DataError("bench results", str(folder), "no Parquet file is there", "run `make bench` first")
    return found[-1]


def rewritten(page: str, table: str) -> str:
    """The page with what lies between its markers replaced.

    Raises:
        DataError: the markers are not there, once each and in order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise DataError("page", page[:40], f"lacks the markers {BEGIN} and {END}", "put them where the table belongs")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def markdown(figures: Sequence[Figure], date: str, environment: Mapping[str, Any]) -> str:
    """What was measured on, one line, and the table."""
    lines = [described(date, environment), "", _line(_HEADER), _line(["---"] * len(_HEADER))]
    return "\n".join([*lines, *(_line(_cells(figure)) for figure in figures)])


def described(date: str, environment: Mapping[str, Any]) -> str:
    """The machine and the libraries, in one line."""
    versions = ", ".join(
        f"{name} {environment[name]}"
        for name in ("torch", "transformers", "ctranslate2")
        if environment.get(name) is not None
    )
    processor = f"{environment['cpu_model']}, {environment['cores']} cores"
    gpu = environment.get("gpu_name")
    where = processor if gpu is None else f"{gpu} (driver {environment['gpu_driver']}, host {processor})"
    parts = [
        f"Measured {date} on {where}",
        f"{environment['threads']} thread{'' if environment['threads'] == 1 else 's'}",
        # On a GPU each row has its own precision, in its shape's name.
        versions if gpu is not None else f"float32, {versions}",
        f"commit {str(environment['git_revision'])[:10]}" + (" with changes" if environment["git_dirty"] else ""),
    ]
    busy = environment.get("busy")
    return "; ".join(parts) + "." + ("" if busy is None else f" **{busy}**")


def _cells(figure: Figure) -> list[str]:
    value = "not measured" if figure.ratio is None else shown(figure.ratio, figure.unit)
    interval = ""
    if figure.low is not None and figure.high is not None:
        interval = f"{shown(figure.low, figure.unit)} to {shown(figure.high, figure.unit)}"
    target = "" if figure.target is None else f"{figure.bound} {shown(figure.target, figure.unit)}"
    reached = {True: "yes", False: "no", None: ""}[figure.reached]
    if figure.reached is False and figure.ratio is not None and figure.target is not None:
        # The ratio alone would do: what stands in the way is told in the note.
        reached = "no (score)" if holds(figure.ratio, figure.target, figure.bound) else reached
    return [figure.name, figure.shape, figure.contestant, value, interval, target, reached, figure.note]


def shown(value: float, unit: str) -> str:
    """A figure with its unit: 1.85x, 12.3 %, 0.38 s."""
    if unit == "share":
        return f"{100 * value:.1f} %"
    return f"{value:.2f}x" if unit == "x" else f"{value:.2f} {unit}"


def _line(cells: Sequence[str]) -> str:
    # A bar in a note would end its cell.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
