"""docs/INPUTS.md says what the reader does."""

from __future__ import annotations

from recipes.inputs_table import PAGE, page, table


def test_the_table_of_inputs_is_what_the_reader_does() -> None:
    held = PAGE.read_text(encoding="utf-8")
    assert page(held) == held


def test_no_form_is_read_with_other_texts() -> None:
    rows = table().splitlines()[2:]
    assert all(row.endswith("| read |") or "| refused: " in row for row in rows)
