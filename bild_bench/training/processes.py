"""Several processes on one machine that share the batches, for CPUs: gradients are averaged by gloo."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import torch


def run_in_processes(work: Callable[..., Any], arguments: tuple[Any, ...], count: int) -> None:
    """Call work(*arguments) in each of count new processes, joined as one group.

    Raises:
        torch.multiprocessing.ProcessRaisedException: one of them failed; the others are ended.
    """
    torch.multiprocessing.start_processes(
        _member, args=(work, arguments, count, _free_port()), nprocs=count, start_method="spawn"
    )


def _member(rank: int, work: Callable[..., Any], arguments: tuple[Any, ...], count: int, port: int) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    work(*arguments)


def _end_with_parent(parent: int) -> None:
    """A killed parent cannot end its children, and a resumed run must not meet them."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
