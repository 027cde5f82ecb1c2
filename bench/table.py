"""Rewrites the tables of docs/PERFORMANCE.md and docs/performance/rows.md: python -m bench.table [PARQUET …]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure, holds, load
from bild_bench.errors import BildBenchError, DataError

END = "<!-- bench: end -->"
RESULTS = Path("results/bench")
# The page that people read, and the appendix with every row.
PAGE, ROWS = Path("docs/PERFORMANCE.md"), Path("docs/performance/rows.md")
_HEADER = ("what", "model", "compared with", "measured", "95 % interval", "goal", "goal met", "notes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 3 after one line that says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.table", description=__doc__)
    parser.add_argument("parquet", nargs="*", type=Path, help="one table each; the newest of results/bench by default")
    given = parser.parse_args(arguments)
    try:
        made = all_tables(given.parquet or [newest(RESULTS)])
        for page in (PAGE, ROWS):
            page.write_text(rewritten(page.read_text(encoding="utf-8"), made), encoding="utf-8")
    except BildBenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}; run this in the project's folder", file=sys.stderr)
        return 3
    return 0


def all_tables(files: Sequence[Path]) -> dict[str, str]:
    """Name of a place in a page -> what belongs there.

    Raises:
        DataError: a file is not there, or is none of ours.
    """
    from bench.summary import tables

    loaded = [load(path) for path in files]
    machines = "\n".join(f"- {described(date, environment)}" for _, date, environment in loaded)
    figures = [figure for found, _, _ in loaded for figure in found]
    return {"machine": machines, **tables(figures), "table": "\n\n".join(markdown(*found) for found in loaded)}


def newest(folder: Path) -> Path:
    """The last Parquet file by its name, which is its date.

    Raises:
        DataError: there is none.
    """
    found = sorted(folder.glob("*.parquet"))
    if not found:
        raise DataError("bench results", str(folder), "no Parquet file is there", "run `make bench` first")
    return found[-1]


def rewritten(page: str, made: Mapping[str, str]) -> str:
    """The page with what lies between each pair of its markers replaced.

    Raises:
        DataError: no markers, a marker without its end, or one of a table that there is not.
    """
    names = [start.partition(" -->")[0] for start in page.split("<!-- bench: ")[1:]]
    names = [name for name in names if name != "end"]
    if not names:
        raise DataError("page", page[:40], "lacks the markers <!-- bench: … -->", "put them where the tables belong")
    for name in names:
        before, begin, rest = page.partition(f"<!-- bench: {name} -->")
        _, end, after = rest.partition(END)
        if not end or name not in made:
            problem = "is no table" if name not in made else f"lacks its {END}"
            raise DataError("page", name, problem, f"correct the marker (tables: {', '.join(made)})")
        page = f"{before}{begin}\n{made[name]}\n{END}{after}"
    return page


def markdown(figures: Sequence[Figure], date: str, environment: Mapping[str, Any]) -> str:
    """What was measured on, one line, and the table."""
    lines = [described(date, environment), "", line(_HEADER), line(["---"] * len(_HEADER))]
    return "\n".join([*lines, *(line(_cells(figure)) for figure in figures)])


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
        # The ratio alone would do: the loss of quality is in the note.
        reached = "no: quality lost" if holds(figure.ratio, figure.target, figure.bound) else reached
    return [figure.name, figure.shape, figure.contestant, value, interval, target, reached, _plain(figure.note)]


def _plain(note: str) -> str:
    """Files of earlier versions say "ms a token"."""
    return note.replace(" ms a t", " ms per t").replace(" allocations a t", " allocations per t")


def shown(value: float, unit: str) -> str:
    """A figure with its unit: 1.85x, 12.3 %, 0.38 s."""
    if unit == "share":
        return f"{100 * value:.1f} %"
    return f"{value:.2f}x" if unit == "x" else f"{value:.2f} {unit}"


def line(cells: Sequence[str]) -> str:
    """One line of a Markdown table."""
    # A bar in a note would end its cell.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
