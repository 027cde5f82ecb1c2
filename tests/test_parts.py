"""Numbered parts of a file: when some are missing."""

from __future__ import annotations

import pytest

from bild_bench.parts import incomplete_parts


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([], None),
        (["model.safetensors", "test-clean.parquet"], None),
        (["test-00000-of-00002.parquet", "test-00001-of-00002.parquet"], None),
        (["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], None),
        (["data/test-00001-of-00002.parquet"], "data/test-*-of-00002.parquet has 1 of 2 parts"),
        (["a-0-of-1.bin", "b-0-of-3.bin", "b-2-of-3.bin"], "b-*-of-3.bin has 2 of 3 parts"),
    ],
)
def test_missing_parts_are_counted(names: list[str], problem: str | None) -> None:
    assert incomplete_parts(names) == problem
