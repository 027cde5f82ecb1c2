"""Several processes on one machine that share the batches, for CPUs: gradients are averaged by gloo.

Nothing heavy is imported here before a new process watches its parent: torch takes seconds to import, and a child of a
parent that was killed meanwhile would live on.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from bild_bench.errors import BildBenchError, RunError

_SECONDS_TO_END = 10.0


def run_in_processes(work: Callable[..., Any], arguments: tuple[Any, ...], count: int) -> None:
    """Call work(*arguments) in each of count new processes, joined as one group.

    Args:
        work: importable by its name; arguments can be pickled.

    Raises:
        BildBenchError: one of them raised it; the others are ended. RunError: one of them was killed.
        RuntimeError: one of them failed otherwise; its traceback is the message.
    """
    context = multiprocessing.get_context("spawn")
    problems = context.SimpleQueue()
    group = (count, _free_port(), os.getpid())
    # As bytes: unpickled at once they would import torch before the watch stands.
    sent = pickle.dumps((work, arguments))
    members = [context.Process(target=_member, args=(rank, sent, group, problems)) for rank in range(count)]
    try:
        for member in members:
            member.start()
        failed = _first_failure(members)
    finally:
        _end(members)
    if failed is not None:
        _raise(failed, problems, count)


def _first_failure(members: Sequence[SpawnProcess]) -> int | None:
    """Wait until all have ended well, or one has not: its exit code."""
    running = list(members)
    while running:
        ready = set(wait([member.sentinel for member in running]))
        ended = [member for member in running if member.sentinel in ready]
        for member in ended:
            # A sentinel is ready a moment before the exit code is known.
            member.join()
            if member.exitcode:
                return member.exitcode
        running = [member for member in running if member not in ended]
    return None


def _end(members: Sequence[SpawnProcess]) -> None:
    started = [member for member in members if member.pid is not None]
    for member in started:
        member.terminate()
    for member in started:
        member.join(_SECONDS_TO_END)
        if member.is_alive():
            member.kill()
            member.join()


def _raise(exit_code: int, problems: Any, count: int) -> None:
    told = []
    while not problems.empty():
        told.append(problems.get())
    # A process whose neighbour has gone fails too, in its communication: what a user can mend comes first.
    for kind, parts in told:
        if kind is not RuntimeError:
            raise kind(*parts)
    if told:
        raise RuntimeError(*told[0][1])
    how = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
    fix = "run the same command again: it resumes; if memory ran out, with fewer processes in another --out"
    raise RunError("--processes", count, f"one of them was terminated ({how})", fix)


def _member(rank: int, sent: bytes, group: tuple[int, int, int], problems: Any) -> None:
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
    try:
        _share_threads(count)
        # From our own parent, over multiprocessing's pipe, which unpickles what it carries in any case.
        work, arguments = pickle.loads(sent)
        work(*arguments)
        _leave_group()
    except BildBenchError as error:
        # As parts: an exception that crosses between processes arrives as text.
        problems.put((type(error), (error.field, error.value, error.problem, error.fix)))
        os._exit(1)
    except Exception:
        problems.put((RuntimeError, (f"in process {rank} of {count}:\n{traceback.format_exc()}",)))
        os._exit(1)


def _share_threads(count: int) -> None:
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        # As accelerate would do, with a warning from each process. torch is loaded, and reads the variable no more.
        torch.set_num_threads(max(1, torch.get_num_threads() // count))
        os.environ["OMP_NUM_THREADS"] = str(torch.get_num_threads())


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
