"""Processes that share the batches: what one of them meets reaches the person who started them."""

from __future__ import annotations

import os
import signal
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
    with pytest.raises(RunError, match=r"^--processes: 1: one of them was ended \(.*SIGKILL.*\); run the same command"):
        run_in_processes(die, (tmp_path,), 1)


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
