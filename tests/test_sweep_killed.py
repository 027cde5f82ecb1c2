"""A sweep of thirty points, killed twice: in the end it is what it would have been, and no text was done twice."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pandas as pd
import pytest

from bild_bench import results
from bild_bench.decoding.records import Counters
from tests.command_line import call, finish, start

TEXTS, POINTS = 12, 30
SWEEP = (
    *("sweep", "--task", "iwslt17", "--limit", str(TEXTS), "--threads", "1", "--warmup", "0"),
    # 5 x 4 of bild, 4 of speculative, 5 of calm, small: 30 beside the baseline.
    *("--mode", "bild,speculative,calm,small", "--alpha-fb", "0.3:0.7:0.1", "--alpha-rb", "1,2,4,inf"),
    *("--gamma", "2:5", "--threshold", "0.5:0.9:0.1"),
)
# All that is decided by seed, texts and models: everything but when, how fast and by which process.
_SAME = (
    *("experiment_id", "point_id", "point", "method", "role", "text_index", "text_id", "draw", "order", "machine"),
    *("source", "output_text", "status", "hit_limit", "source_tokens", "diverged_at", *Counters.names()),
)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> results.Experiment:
    directory = tmp_path_factory.mktemp("unbroken") / "out"
    assert call(*SWEEP, "--out", directory).code == 0
    return results.read(directory)


def kill_after(texts: int, out: Path) -> set[str]:
    """Start the sweep, kill it once so many texts are there, and say which are."""
    process = start(*SWEEP, "--out", out, cwd=out.parent)
    try:
        give_up = time.monotonic() + 300
        while len(list((out / "shards").glob("*.parquet"))) < texts:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert results.read(out).run.status == "running"
    return results.finished_texts(out)


def test_a_sweep_that_is_killed_twice_ends_as_one_that_is_not(unbroken: results.Experiment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = kill_after(3, out)
    second = kill_after(len(first) + 3, out)
    assert 3 <= len(first) < len(second) < TEXTS
    assert first < second
    ended = finish(start(*SWEEP, "--out", out, cwd=tmp_path), 300)
    assert ended.code == 0, ended.err
    assert f"resuming {out}: {len(second)} of {TEXTS} texts are there" in ended.err

    there = results.read(out)
    assert there.run.status == "complete"
    assert there.run.points == unbroken.run.points
    assert there.run.texts_expected == unbroken.run.texts_expected
    assert len(there.run.points) == POINTS + 1
    # No text twice and none missing.
    assert len(there.samples) == TEXTS * (POINTS + 1)
    assert not there.samples.duplicated(["text_id", "point_id"]).any()
    assert set(there.samples.text_id) == set(there.run.texts_expected)
    # Each text by one process: the first two kept what they had finished.
    by_process = there.samples.groupby("process_id", sort=False).text_id.apply(set)
    assert sorted(map(len, by_process)) == sorted([len(first), len(second - first), TEXTS - len(second)])
    assert {frozenset(first), frozenset(second - first)} < set(map(frozenset, by_process))

    pd.testing.assert_frame_equal(there.samples[[*_SAME]], unbroken.samples[[*_SAME]])
    for column in ("output_ids", "exit_layers"):
        lists = [[None if ids is None else list(ids) for ids in one.samples[column]] for one in (there, unbroken)]
        assert lists[0] == lists[1]
    assert {path.name for path in out.iterdir()} == {path.name for path in unbroken.directory.iterdir()}
