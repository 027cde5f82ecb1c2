"""The README's figures are those of results/reference, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def row(label: str, table: int) -> list[str]:
    """The figures that stand behind a point's label in the first or second table."""
    lines = [line.strip() for line in README.splitlines() if line.startswith(f"    {label} ")]
    return re.findall(r"\d+\.\d+", lines[table].removeprefix(label))


@pytest.mark.parametrize("label", ["vanilla", "bild fb=0.5 rb=2"])
def test_the_example_is_the_recorded_run(label: str) -> None:
    point = pd.read_parquet(ROOT / "results" / "reference" / "demo.parquet").set_index("point").loc[label]
    speed = [f"{point[f'speedup_{kind}{end}']:.2f}" for kind in ("total", "decoding") for end in ("", "_low", "_high")]
    if point["role"] == "baseline":
        speed = ["1.00", "1.00"]  # its interval has no width and is left out
    assert row(label, 0) == [f"{point['quality_value']:.2f}", *speed, f"{point['ms_per_token']:.2f}"]
    shares = ("fallback_pct", "low_confidence_pct", "rollback_pct", "small_share_pct", "large_share_pct")
    assert row(label, 1) == [f"{point[name]:.1f}" for name in shares]


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


def test_the_readme_leads_to_the_other_pages() -> None:
    links = re.findall(r"\]\((docs/[^)#]+\.md)\)", README)
    assert len(set(links)) > 5
