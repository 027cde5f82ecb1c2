"""The README's figures are those of results/reference, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rows(label: str) -> list[list[str]]:
    """The figures that stand behind a point's label, table by table."""
    lines = [line for line in README.splitlines() if line.startswith(f"    {label} ")]
    return [re.findall(r"[+-]?\d+\.?\d*", line.removeprefix(f"    {label}")) for line in lines]


@pytest.mark.parametrize("label", ["vanilla", "bild fb=0.5 rb=2", "speculative gamma=5", "small"])
def test_the_example_is_the_recorded_run(label: str) -> None:
    point = pd.read_parquet(ROOT / "results" / "reference" / "demo.parquet").set_index("point").loc[label]

    def interval(name: str, form: str) -> list[str]:
        return [format(point[f"{name}{end}"], form) for end in ("", "_low", "_high")]

    baseline = point["role"] == "baseline"
    same = baseline or point["quality_difference"] == 0
    difference = [f"{point['quality_difference']:.2f}"] if same else interval("quality_difference", "+.2f")
    total, decoding = (["1.00"] if baseline else interval(f"speedup_{kind}", ".2f") for kind in ("total", "decoding"))
    quality, speed, *_ = rows(label)
    assert quality == [f"{point['quality_value']:.2f}", *difference, f"{point['chrf_value']:.2f}", *total]
    latency = [f"{point[f'latency_p{share}_ms']:.1f}" for share in (50, 95)]
    assert speed == [*decoding, f"{point['ms_per_token']:.2f}", f"{point['tokens_per_second']:.0f}", *latency]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


def test_the_readme_leads_to_the_other_pages() -> None:
    links = re.findall(r"\]\((docs/[^)#]+\.md)\)", README)
    assert len(set(links)) > 5
