"""Runs in processes of their own, killed and stopped while they decode: nothing finished is lost or done twice."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bild_bench import results
from tests.command_line import QUICK, Ended, call, finish, start

TEXTS = 24
RUN = ("run", "--task", "iwslt17", "--limit", str(TEXTS), *QUICK, "--out")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> results.Experiment:
    directory = tmp_path_factory.mktemp("unbroken") / "out"
    assert call(*RUN, directory).code == 0
    return results.read(directory)


@pytest.fixture
def half_way(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process in the middle of its texts, and its directory."""
    out = tmp_path / "out"
    process = start(*RUN, out, cwd=tmp_path)
    try:
        _wait_for_texts(process, out, 3)
        yield process, out
    finally:
        process.kill()
        process.communicate()


def _wait_for_texts(process: subprocess.Popen[str], out: Path, number: int) -> None:
    give_up = time.monotonic() + 100
    while len(list((out / "shards").glob("*.parquet"))) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.005)


def _assert_same_outcome(out: Path, unbroken: results.Experiment) -> None:
    """Every text once by each of the two points, with the ids and counters of a run that nothing broke."""
    there = results.read(out)
    assert there.run.status == "complete"
    assert there.run.experiment_id == unbroken.run.experiment_id
    columns = ["text_id", "text_index", "point", "order", "output_text", "large_calls", "small_calls", "rollbacks"]
    assert len(there.samples) == 2 * TEXTS
    assert there.samples[columns].equals(unbroken.samples[columns])
    assert list(map(list, there.samples.output_ids)) == list(map(list, unbroken.samples.output_ids))
    assert {path.name for path in out.iterdir()} == {path.name for path in unbroken.directory.iterdir()}


def test_a_killed_run_goes_on_where_it_was(
    half_way: tuple[subprocess.Popen[str], Path], unbroken: results.Experiment
) -> None:
    process, out = half_way
    process.send_signal(signal.SIGSTOP)
    second = call(*RUN, out)
    assert (second.code, second.out) == (1, "")
    assert second.err == (
        f"error: results: {str(out)!r}: another process is writing there; "
        "wait until it ends, or choose another results directory\n"
    )
    process.kill()
    process.communicate()
    finished = results.finished_texts(out)
    assert 3 <= len(finished) < TEXTS
    assert results.read(out).run.status == "running"
    other = call(*RUN, out, "--alpha-fb", "0.9")
    assert (other.code, other.out) == (2, "")
    assert "points ['vanilla', 'bild fb=0.5 rb=2'] there, ['vanilla', 'bild fb=0.9 rb=2'] here" in other.err
    ended = call(*RUN, out)
    assert ended.code == 0
    assert f"resuming {out}: {len(finished)} of {TEXTS} texts are there" in ended.err
    _assert_same_outcome(out, unbroken)
    # What was finished was kept and not decoded again: those rows are of the first process.
    samples = results.read(out).samples
    by_process = samples.groupby("process_id").text_id.apply(set)
    assert sorted(map(len, by_process)) == sorted([len(finished), TEXTS - len(finished)])
    assert finished in list(by_process)


def test_ctrl_c_keeps_what_is_finished_and_says_so_in_one_line(
    half_way: tuple[subprocess.Popen[str], Path], unbroken: results.Experiment
) -> None:
    process, out = half_way
    process.send_signal(signal.SIGINT)
    stopped = "stopped; what is finished is kept; the same command resumes\n"
    assert finish(process) == Ended(130, "", stopped)
    assert len(results.finished_texts(out)) >= 3
    assert not list(out.rglob("*.part"))
    assert call(*RUN, out).code == 0
    _assert_same_outcome(out, unbroken)
    assert results.read(out).samples.process_id.nunique() == 2
