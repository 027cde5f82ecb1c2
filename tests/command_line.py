"""The command line for the tests: in this process where that will do, as a process of its own where it will not."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from bild_bench.cli.main import main

# Small and the same on every machine; one thread, so that tests side by side do not fight.
QUICK = ("--threads", "1", "--warmup", "0")


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def last_remark(self) -> str:
        """The last line on stderr."""
        return self.err.rstrip("\n").rpartition("\n")[2]


def call(*arguments: str | Path) -> Ended:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["bild-bench", *map(str, arguments)]
    with patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return Ended(end.value.code, out.getvalue(), err.getvalue())


def start(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """Start a command as a process of its own, without a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "bild_bench", *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in the background deaf to Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finish(process: subprocess.Popen[str], seconds: float = 120) -> Ended:
    """Wait for a process; it is killed after so many seconds."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return Ended(process.returncode, out, err)
