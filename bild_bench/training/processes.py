"""Several processes on one machine that share the batches, for CPUs: gradients are averaged by gloo."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.multiprocessing import get_context
from torch.multiprocessing.spawn import ProcessException, ProcessExitedException, start_processes

from bild_bench.errors import BildBenchError, RunError


def run_in_processes(work: Callable[..., Any], arguments: tuple[Any, ...], count: int) -> None:
    """Call work(*arguments) in each of count new processes, joined as one group.

    Raises:
        BildBenchError: one of them raised it; the others are ended. RunError: one of them was killed.
        torch.multiprocessing.ProcessRaisedException: one of them failed otherwise.
    """
    problems = get_context("spawn").SimpleQueue()
    group = (count, _free_port(), os.getpid())
    try:
        # The library leaves it without types.
        start_processes(  # type: ignore[no-untyped-call]
            _member, args=(work, arguments, group, problems), nprocs=count, start_method="spawn"
        )
    except ProcessException as error:
        if not problems.empty():
            kind, told = problems.get()
            raise kind(*told) from error
        if isinstance(error, ProcessExitedException):
            fix = "run the same command again: it goes on; if memory ran out, with fewer processes in another --out"
            raise RunError("--processes", count, f"one of them was ended ({error})", fix) from error
        raise


def _member(
    rank: int, work: Callable[..., Any], arguments: tuple[Any, ...], group: tuple[int, int, int], problems: Any
) -> None:
    count, port, parent = group
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    if "OMP_NUM_THREADS" not in os.environ:
        # As accelerate would do, with a warning from each process. torch is loaded, and reads the variable no more.
        torch.set_num_threads(max(1, torch.get_num_threads() // count))
        os.environ["OMP_NUM_THREADS"] = str(torch.get_num_threads())
    try:
        work(*arguments)
        _leave_group()
    except BildBenchError as error:
        # As parts: an exception that crosses between processes arrives as text.
        problems.put((type(error), (error.field, error.value, error.problem, error.fix)))
        raise


def _leave_group() -> None:
    """All together: a process that leaves while others still talk to it is aborted by its communication threads."""
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def _end_with_parent(parent: int) -> None:
    """A killed parent cannot end its children, and a resumed run must not meet them."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
