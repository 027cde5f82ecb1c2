"""Writes the study's tables into docs/STUDY.md, docs/study/ and README.md: python -m study.page [FOLDER]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bild_bench.errors import BildBenchError, DataError
from study import operations, sections
from study.agree import REFERENCE, agreement
from study.cells import behind, figures_table, operations_table, short_table
from study.findings import SETS, findings_table
from study.rows import Row, load
from study.run import ROWS
from study.trials import trials

END = "<!-- study: end -->"
# A second run's rows, beside the first's.
AGAIN = "study-again.parquet"
APPENDICES = ("bild", "speculative", "early-exit", "ablations", "sampling", "oracle", "operations", "peers")
PAGES = (Path("README.md"), Path("docs/STUDY.md"), *(Path(f"docs/study/{name}.md") for name in APPENDICES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 3 after one line that says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m study.page", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=REFERENCE, help="holds what `make study` wrote")
    given = parser.parse_args(arguments)
    try:
        tables = all_tables(given.folder)
        for page in PAGES:
            page.write_text(rewritten(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    except BildBenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{error.filename}: {error.strerror}; run this in the project's folder", file=sys.stderr)
        return 3
    return 0


def all_tables(folder: Path) -> dict[str, str]:
    """Name of a place in a page -> what belongs there.

    Raises:
        DataError: a file of results is missing or damaged.
    """
    rows, date, environment = load(folder / ROWS)
    absent = [trial.name for trial in trials() if trial.name not in {row.trial for row in rows}]
    if absent:
        problem = f"is a part of a study: it lacks {', '.join(absent)}"
        raise DataError("study results", str(folder / ROWS), problem, "run the whole of `make study`")
    tables = {"measured": "\n\n".join([described(rows, date, environment), *_again(folder / AGAIN, rows)])}
    for name, section in sections.SECTIONS.items():
        picked = section(rows)
        tables[name] = "\n\n".join([figures_table(picked), behind(picked)])
    tables["summary"] = short_table(sections.summary(rows, "captions"), wide=False)
    tables |= {f"{name}-answer": short_table(sections.summary(rows, name)) for name in SETS}
    counted = operations.load(folder / operations.FILE)
    tables |= {"operations": operations_table(counted), "findings": findings_table(rows, counted)}
    return tables


def described(rows: Sequence[Row], date: str, environment: Mapping[str, Any]) -> str:
    """The machine, the libraries and the scores' signatures."""
    parts = [
        f"Measured {date} on {environment['cpu_model']}, 1 thread of {environment['cores']} cores",
        f"float32, torch {environment['torch']}, transformers {environment['transformers']}",
        f"commit {str(environment['git_revision'])[:10]}" + (" with changes" if environment["git_dirty"] else ""),
    ]
    limit = environment["options"]["limit"]
    parts += [] if limit is None else [f"**a trial of at most {limit} texts**"]
    deviation = environment["run_to_run"]["speedup"]
    parts.append(f"a speed-up varies by {100 * deviation:.1f} % from run to run (standard deviation)")
    busy = environment.get("busy")
    signatures = dict.fromkeys(row.signature for row in rows if row.signature)
    lines = ["; ".join(parts) + "." + ("" if busy is None else f" **{busy}**")]
    return "\n\n".join([*lines, "Signatures: " + "; ".join(f"`{signature}`" for signature in signatures) + "."])


def _again(path: Path, rows: Sequence[Row]) -> Iterator[str]:
    """How far a second run agreed, where its rows are there."""
    if path.is_file():
        again, date, environment = load(path)
        compared, outside = agreement(again, rows)
        where = f"{environment['cpu_model']}, commit {str(environment['git_revision'])[:10]}"
        within = f"{compared - len(outside)} of {compared} figures within the intervals of the first run"
        yield f"Run again {date} ({where}): {within}."


def rewritten(page: str, tables: Mapping[str, str]) -> str:
    """The page with what lies between each pair of its markers replaced.

    Raises:
        DataError: a marker without its end, or of a table that there is not.
    """
    for name in _named(page):
        if name not in tables:
            raise DataError("page", name, f"is no table (there are: {', '.join(tables)})", "correct the marker")
        before, begin, rest = page.partition(f"<!-- study: {name} -->")
        _, end, after = rest.partition(END)
        if not end:
            raise DataError("page", name, f"lacks its {END}", "put it where the table ends")
        page = f"{before}{begin}\n{tables[name]}\n{END}{after}"
    return page


def _named(page: str) -> list[str]:
    starts = page.split("<!-- study: ")[1:]
    return [name for name in (start.partition(" -->")[0] for start in starts) if name != "end"]


if __name__ == "__main__":
    sys.exit(main())
