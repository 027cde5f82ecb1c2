"""Samples of a member, whole or in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from bild_bench.errors import DataError
from tests.made_reports import experiment, only_group


@pytest.mark.parametrize("finish", [True, False])
def test_samples_are_read_in_part_while_the_experiment_runs_and_after(tmp_path: Path, finish: bool) -> None:
    experiment(tmp_path / "x", finish=finish)
    [member] = only_group(tmp_path).members

    part = member.samples(("text_id", "decode_seconds"))

    assert list(part["text_id"]) == ["a", "a", "b", "b"]
    assert list(part["decode_seconds"]) == [1.5, 0.3, 3.0, 1.2]
    assert ("trace" in part) is not finish


def test_samples_in_part_that_are_lost_are_named(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    [member] = only_group(tmp_path).members
    (tmp_path / "x" / "samples.parquet").unlink()

    with pytest.raises(DataError, match=r"samples\.parquet is missing"):
        member.samples(("text_id",))
