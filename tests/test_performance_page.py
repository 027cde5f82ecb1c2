"""Every figure of docs/PERFORMANCE.md is that of a file in results/reference."""

from __future__ import annotations

from pathlib import Path

from bench.figures import load
from bench.table import markdown, rewritten

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("random", "embedded", "trained", "memory")


def test_the_tables_are_the_recorded_ones() -> None:
    page = (ROOT / "docs" / "PERFORMANCE.md").read_text(encoding="utf-8")
    files = [ROOT / "results" / "reference" / f"bench-cpu-{part}.parquet" for part in PARTS]
    assert rewritten(page, "\n\n".join(markdown(*load(file)) for file in files)) == page
