"""The command line's own speed: `--help`, and a report on 100 experiments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure, figure, missing
from bench.shapes import Announce

EXPERIMENTS = 100
HELP_SECONDS, REPORT_SECONDS = 0.4, 1.0
_RUNS = 5
_COMMAND = (sys.executable, "-m", "bild_bench")


def command_figures(folder: Path, announce: Announce, experiments: int = EXPERIMENTS) -> list[Figure]:
    """Seconds of both commands, start of Python included.

    Args:
        folder: experiments are made below it, and removed.
        announce: called with one line before something slow.
        experiments: how many the report reads.
    """
    announce(f"--help, and a report on {experiments} experiments")
    what = f"report on {experiments} experiments"
    rows = [_timed("--help", ["--help"], HELP_SECONDS)]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as space:
        first = Path(space) / "000"
        options = ("--task", "iwslt17", "--mode", "bild", "--limit", "10", "--out", str(first))
        problem = _problem(("run", *options))
        if problem is not None:
            return [*rows, missing(what, "command line", "itself", problem, target=REPORT_SECONDS, bound="at most")]
        for number in range(1, experiments):
            shutil.copytree(first, Path(space) / f"{number:03d}")
        return [*rows, _timed(what, ["report", space], REPORT_SECONDS)]


def _timed(what: str, arguments: Sequence[str], target: float) -> Figure:
    # The first call reads files that the others find in memory.
    problem = _problem(arguments)
    if problem is not None:
        return missing(what, "command line", "itself", problem, target=target, bound="at most")
    seconds = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        _problem(arguments)
        seconds.append(time.perf_counter() - start)
    note = f"mean of {_RUNS} calls, with the files in memory"
    ones = [1.0] * _RUNS
    return figure(what, "command line", "itself", seconds, ones, target=target, bound="at most", unit="s", note=note)


def _problem(arguments: Sequence[str]) -> str | None:
    """Run a command; what it said last, if it failed."""
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([*_COMMAND, *arguments], capture_output=True, text=True, check=False, env=quiet)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
