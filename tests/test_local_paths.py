"""A path that looks like an address is a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from bild_bench import results
from bild_bench.checks import folder
from bild_bench.errors import UsageError
from bild_bench.report.collect import collect
from tests.command_line import QUICK, call
from tests.made_data import load, parquet
from tests.made_reports import experiment


@pytest.mark.parametrize("name", ["a:b", "a::b", "s3:x", "file:c", "https:", "C:", "a=b", "100%", "#1?x=y", " "])
def test_results_are_written_and_read_whatever_the_folder_is_called(tmp_path: Path, name: str) -> None:
    directory = experiment(tmp_path / name)
    assert results.read(directory).run.status == "complete"
    found = collect([tmp_path])
    assert (found.damaged, found.groups[0].entries[1].speedup) == ((), pytest.approx(3.0))


@pytest.mark.parametrize("name", ["a:b.parquet", "s3:x.parquet", "file:c.parquet"])
def test_so_are_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    parquet(Path(name), {"source": ["a"], "target": ["b"]})
    assert load(name).examples[0].source == "a"


def test_a_whole_run_into_such_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for out in ("a:b", "a::b/"):
        ended = call(
            "run", "--task", "iwslt17", "--limit", "1", "--mode", "vanilla", "--no-baseline", *QUICK, "--out", out
        )
        assert (ended.code, "damaged" in ended.err) == (0, False)
        assert (tmp_path / out / "samples.parquet").is_file()
        assert "vanilla" in call("report", out).out


@pytest.mark.parametrize("address", ["s3://bucket/x", "hf://datasets/x", "https://a/b", "FILE:///tmp/x"])
def test_an_address_of_a_known_scheme_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"is an address, and must be a directory on this machine; give its path"):
        folder("--out", address)
    ended = call("run", "--task", "iwslt17", "--limit", "1", *QUICK, "--out", address)
    assert (ended.code, list(tmp_path.iterdir())) == (2, [])


def test_an_unknown_scheme_is_a_path() -> None:
    assert folder("--out", "run:1//x") == Path("run:1//x")
