"""Processes that share the batches: what one of them meets reaches the person who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bild_bench.errors import DataError, RunError
from bild_bench.training.processes import run_in_processes


def refuse(folder: Path) -> None:
    (folder / os.environ["RANK"]).write_text(os.environ["WORLD_SIZE"])
    if os.environ["RANK"] == "1":
        raise DataError("--data", "a\nb", "no text is left", "check the columns")


def die(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_problem_of_one_process_arrives_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        run_in_processes(refuse, (tmp_path,), 2)
    assert str(caught.value) == "--data: 'a\\nb': no text is left; check the columns"
    assert caught.value.exit_code == 3
    assert (tmp_path / "1").read_text() == "2"


def test_a_process_that_is_killed_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"^--processes: 1: one of them was terminated \(.*SIGKILL.*\); run the same command"
    ):
        run_in_processes(die, (tmp_path,), 1)


def fail(_: Path) -> None:
    raise ZeroDivisionError("by hand")


def test_another_failure_comes_with_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)^in process 0 of 1:\n.*in fail\n.*ZeroDivisionError: by hand"):
        run_in_processes(fail, (tmp_path,), 1)


PARENT = """
import sys
import types
from bild_bench.training.processes import run_in_processes

def sleep_long(): ...

if __name__ == "__main__":
    # Known by its name only, so that the children import it and the parent does not.
    sleep_long.__module__ = "tests.sleeping"
    sys.modules["tests.sleeping"] = types.SimpleNamespace(sleep_long=sleep_long)
    run_in_processes(sleep_long, (), 2)
"""


def children_of(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in listed]


def alive(process: int) -> bool:
    """A zombie, whose new parent has not asked for it yet, does nothing any more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for children in /proc")
def test_children_end_soon_after_a_parent_that_was_killed_before_they_had_imported_anything(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    root = Path(__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": str(root)}
    parent = subprocess.Popen([sys.executable, str(tmp_path / "parent.py")], env=environment)
    try:
        # Two members, and the tracker of the library's queues.
        until(lambda: len(children_of(parent.pid)) >= 3)
        children = children_of(parent.pid)
    finally:
        parent.kill()
        parent.wait()
    until(lambda: not any(map(alive, children)))


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def note_threads(folder: Path) -> None:
    (folder / os.environ["RANK"]).write_text(f"{os.environ['OMP_NUM_THREADS']} {torch.get_num_threads()}")


@pytest.mark.parametrize(("given", "count"), [(None, 2), ("3", 1)])
def test_processes_share_the_threads_unless_the_environment_says_how_many(
    given: str | None, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    run_in_processes(note_threads, (tmp_path,), count)
    for rank in range(count):
        told, used = (tmp_path / str(rank)).read_text().split()
        if given is None:
            assert told == used
            assert int(told) <= max(1, (os.cpu_count() or 1) // count)
        else:
            assert told == given
