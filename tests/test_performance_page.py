"""The figures of docs/PERFORMANCE.md and docs/performance/rows.md are those of the files in results/reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.figures import Figure, missing
from bench.summary import tables
from bench.table import PAGE, ROWS, all_tables, rewritten

ROOT = Path(__file__).resolve().parents[1]
FILES = ("bench-cpu.parquet", "bench-cpu-trained.parquet", "bench-cpu-memory.parquet")
NOTE = "fb=0.9; BLEU 29.50 against 30.00 (-0.50 [-1.00, +0.25]); small model: standard"
BILD = Figure("BiLD", "a+b", "over our vanilla, no loss", 1.5, 1.25, 1.75, 1.85, "at least", False, "x", 9, NOTE)


@pytest.mark.parametrize("page", [PAGE, ROWS], ids=str)
def test_the_tables_are_the_recorded_ones(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    made = all_tables([ROOT / "results" / "reference" / name for name in FILES])
    assert rewritten(text, made) == text


def test_each_program_has_a_column_and_each_model_a_line() -> None:
    figures = [
        Figure("vanilla", "t5-small", f"over {name}", ratio, low, 5.0, None, "at least", None, "x", 9, "")
        for name, ratio, low in (("transformers generate", 4.0, 3.0), ("CTranslate2 float32", 2.0, None))
    ]
    figures.append(replace(figures[0], shape="my pair", ratio=7.0))
    assert tables(figures)["decoding"].splitlines() == [
        "| model | transformers generate | CTranslate2 float32 | CTranslate2 int8 |",
        "| --- | --- | --- | --- |",
        "| T5-small | 4.00x [3.00, 5.00] | 2.00x |  |",
        "| my pair | 7.00x [3.00, 5.00] |  |  |",
    ]


def test_bild_is_shown_with_what_it_costs_and_a_goal_that_is_not_met_is_listed() -> None:
    made = tables([BILD, missing("BiLD", "a+b", "over our vanilla, a loss of 1 at most", "none", target=2.0)])
    assert made["bild"].splitlines()[2] == ("| a+b | 1.50x [1.25, 1.75] | -0.50 [-1.00, +0.25] | not measured |  |  |")
    assert made["goals"].splitlines()[2:] == [
        "| BiLD over our large model alone, no loss: a+b | at least 1.85x | 1.50x [1.25, 1.75] | -0.50 [-1.00, +0.25] |"
    ]
