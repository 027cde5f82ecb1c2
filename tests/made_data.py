"""Small data files for the tests, and the shortest way to load them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bild_bench.data import Examples, load_examples
from bild_bench.tasks import load_task

ROWS = [{"source": f"Satz {number}", "target": f"sentence {number}"} for number in range(10)]


def load(
    path: object, task: str = "custom", split: str | None = None, limit: int | None = None, **over: str
) -> Examples:
    return load_examples(load_task(task, **over), str(path), split, limit, 0, announce=lambda _: None)


def jsonl(path: Path, rows: list[Any] = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    import pyarrow
    from pyarrow.parquet import write_table

    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened here: a name such as "a:b.parquet" would be taken for an address.
    with path.open("wb") as file:
        write_table(pyarrow.table(columns), file)
    return path


def text(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
