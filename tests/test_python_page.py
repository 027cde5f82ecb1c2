"""The examples of docs/PYTHON.md run as they stand, one after the other, and do what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd

import bild_bench
from tests.made_data import jsonl

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "PYTHON.md").read_text(encoding="utf-8")
EMBEDDED = Path(bild_bench.__file__).parent / "embedded/data/de_en.jsonl"


def test_every_example_runs_as_it_stands(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    lines = [json.loads(line) for line in EMBEDDED.read_text(encoding="utf-8").splitlines()]
    for start, name in enumerate(("val", "test")):
        jsonl(tmp_path / f"{name}.jsonl", lines[start:12:2])
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ S True$|\S S True$", done.stdout, re.MULTILINE)
    assert "bild-bench run --task custom --mode " in done.stdout
    assert "fastest at no loss" in done.stdout
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    grid = pd.read_parquet(tmp_path / "grid/summary.parquet")
    assert list(grid["point"])[:3] == ["vanilla", "bild fb=0.3 rb=1", "bild fb=0.3 rb=2"]
    assert len(grid) == 1 + 3 * 3


def test_the_page_names_the_interface() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.split("## One text")[0]))
    assert set(bild_bench.__all__) - {"__version__"} <= named
