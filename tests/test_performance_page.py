"""Every figure in the table of docs/PERFORMANCE.md is that of a file in results/reference."""

from __future__ import annotations

from pathlib import Path

from bench.figures import load
from bench.table import markdown, rewritten

ROOT = Path(__file__).resolve().parents[1]


def test_the_table_is_the_recorded_one() -> None:
    page = (ROOT / "docs" / "PERFORMANCE.md").read_text(encoding="utf-8")
    names = ("bench-cpu.parquet", "bench-cpu-trained.parquet", "bench-cpu-memory.parquet")
    files = [ROOT / "results" / "reference" / name for name in names]
    assert rewritten(page, "\n\n".join(markdown(*load(file)) for file in files)) == page
