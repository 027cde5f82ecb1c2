"""The table of docs/INPUTS.md: every form of `tests/made_forms.py`, written to a folder and read.

    python recipes/inputs_table.py --write   # put it into docs/INPUTS.md

The outcome is what the reader says, not what anybody expected; `tests/test_inputs_page.py` holds the page to it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bild_bench.data import load_examples
from bild_bench.errors import DataError
from bild_bench.tasks import load_task
from tests.made_forms import FORMS, TEXTS, Form

PAGE = Path(__file__).resolve().parents[1] / "docs" / "INPUTS.md"
BEGIN, END = "<!-- table: recipes/inputs_table.py -->", "<!-- end of table -->"


def table() -> str:
    """The table in Markdown."""
    rows = ["| form | file | outcome |", "| --- | --- | --- |"]
    for form in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(f"| {form.what} | `{form.name}` | {_outcome(form, Path(folder))} |")
    return "\n".join(rows)


def _outcome(form: Form, folder: Path) -> str:
    form.make(folder)
    task = load_task("custom", source_column=form.columns[0], target_column=form.columns[1])
    try:
        found = load_examples(task, str(folder / form.name), None, None, 0, lambda line: None).examples
    except DataError as error:
        place = "" if str(folder) in str(error.value) else f"{error.field}: "
        said = f"{place}{error.problem}; {error.fix}".replace(f"{folder}/", "").replace("|", "\\|")
        # Other versions of a library give other reasons, and the forms that are read stand above the table.
        said = re.sub(r"(cannot be read as \S+) \([^)]*\)", r"\1", said).split(", or give a folder or")[0]
        return f"refused: {said}"
    return "read" if [(text.source, *text.references) for text in found] == TEXTS else "read, with other texts"


def page(text: str) -> str:
    """The page with the table in its place."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    made = page(PAGE.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
    else:
        print(made)
