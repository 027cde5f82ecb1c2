"""`bild-bench doctor`: is this machine fit to measure on, and what to do where it is not.

Only what makes a run impossible fails; what makes it slow, impolite or hard to trust warns.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from bild_bench.printable import one_line

Status = Literal["ok", "warn", "fail"]

_GIB = 2**30
_MEMORY_NEEDED, _MEMORY_WANTED = 1 * _GIB, 8 * _GIB  # the embedded pair; a pair of T5-large and T5-small in float32
_RESULTS_NEEDED, _CACHE_WANTED = 100 * 2**20, 10 * _GIB
_HUB_SECONDS = 3.0
_MODULES = (
    *("transformers", "datasets", "tokenizers", "safetensors", "huggingface_hub", "pandas", "pyarrow"),
    *("sacrebleu", "rouge_score", "sentencex", "pynvml", "yaml"),
)


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, what was found, and what to do unless all is well."""

    name: str
    status: Status
    found: str
    advice: str | None = None


def doctor(
    json_output: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check that bild-bench runs on this machine and that its timings can be trusted."""
    checks = [check() for check in CHECKS]
    possible = all(check.status != "fail" for check in checks)
    if json_output:
        typer.echo(json.dumps({"possible": possible, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        _print_table(checks, possible)
    if not possible:
        raise typer.Exit(1)


def check_python() -> Check:
    # An older Python than the package asks for never gets here: pip refuses it.
    return Check("python", "ok", platform.python_version())


def check_packages() -> Check:
    missing = [module for module in _MODULES if find_spec(module) is None]
    if missing:
        return Check("packages", "fail", f"missing: {', '.join(missing)}", "install bild-bench again with pip")
    return Check("packages", "ok", "all installed")


def check_torch() -> Check:
    try:
        import torch
    except (ImportError, OSError) as error:
        return Check("torch", "fail", _one_line(error), "install torch as described at https://pytorch.org/get-started")
    build = "a CPU build" if torch.version.cuda is None else f"built for CUDA {torch.version.cuda}"
    return Check("torch", "ok", f"{torch.__version__}, {build}, {torch.backends.cpu.get_cpu_capability()}")


def check_threads() -> Check:
    """More threads than cores wait for one another, and each step takes as long as the slowest of them."""
    from bild_bench.measure.machine import cpu_quota, usable_cores

    try:
        import torch
    except (ImportError, OSError):
        return Check("threads", "warn", "not known without torch", "repair torch first")
    threads, cores, quota = torch.get_num_threads(), usable_cores(), cpu_quota()
    if cores is None:
        return Check("threads", "ok", f"{threads} threads; the number of cores is not known")
    limit = cores if quota is None else max(1, min(cores, int(quota)))
    granted = "" if quota is None else f", of which the container grants {quota:g}"
    found = f"{threads} threads on {cores} usable cores{granted}"
    if threads > limit:
        return Check("threads", "warn", found, f"set OMP_NUM_THREADS={limit}")
    return Check("threads", "ok", found)


def check_gpu() -> Check:
    from bild_bench.measure.gpu import gpu_state

    try:
        import torch

        usable = torch.cuda.is_available()
        state = gpu_state(0)
    except (ImportError, OSError, RuntimeError) as error:
        return Check(
            "gpu", "warn", _one_line(error), "repair torch or the NVIDIA driver; the CPU can be used meanwhile"
        )
    if not usable:
        if state["name"] is None:
            return Check("gpu", "ok", "no NVIDIA GPU: models run on the CPU")
        return Check("gpu", "warn", f"{state['name']}, which this torch cannot use", "install a CUDA build of torch")
    found = f"{torch.cuda.get_device_name(0)}, driver {state['driver']}, {state['temperature_c']} degrees Celsius"
    others = state["other_processes"]
    if isinstance(others, int) and others > 0:
        return Check("gpu", "warn", f"{found}; {others} other processes on it", "wait for them: they change the times")
    reasons = state["throttle_reasons"]
    if isinstance(reasons, str) and any(word in reasons for word in ("thermal", "slowdown", "brake")):
        return Check("gpu", "warn", f"{found}; throttled: {reasons}", "let it cool down, and check its power supply")
    return Check("gpu", "ok", found)


def check_memory() -> Check:
    from bild_bench.measure.machine import available_memory, total_memory

    available, total = available_memory(), total_memory()
    memory = total if available is None else available
    if memory is None:
        return Check("memory", "ok", "not known")
    found = f"{memory / _GIB:.1f} GiB {'in all' if available is None else 'available'}"
    if memory < _MEMORY_NEEDED:
        return Check("memory", "fail", found, "close other programs: the embedded models need at least 1 GiB")
    if memory < _MEMORY_WANTED:
        return Check("memory", "warn", found, "use small models: a T5-large pair in float32 needs 8 GiB")
    return Check("memory", "ok", found)


def check_hub() -> Check:
    from huggingface_hub import constants

    advice = "use local data and models, or those that are embedded; a proxy goes into HTTPS_PROXY"
    if constants.HF_HUB_OFFLINE:
        return Check("hub", "ok", "not checked: HF_HUB_OFFLINE is set, so only cached models and data are used")
    problem = _hub_problem(constants.ENDPOINT)
    if problem is not None:
        return Check("hub", "warn", f"{constants.ENDPOINT} cannot be reached: {problem}", advice)
    return Check("hub", "ok", f"{constants.ENDPOINT} answers")


def check_results_folder() -> Check:
    folder = _nearest_existing(Path("results"))
    free = shutil.disk_usage(folder).free
    found = f"{free / _GIB:.1f} GiB free in {folder}"
    if not os.access(folder, os.W_OK):
        return Check("results", "fail", f"{folder} is not writable", "run in a folder of your own")
    if free < _RESULTS_NEEDED:
        return Check("results", "fail", found, "free some disk space: at least 0.1 GiB is needed")
    return Check("results", "ok", found)


def check_cache_folder() -> Check:
    from huggingface_hub import constants

    folder = _nearest_existing(Path(constants.HF_HUB_CACHE))
    free = shutil.disk_usage(folder).free
    found = f"{free / _GIB:.1f} GiB free in {folder}"
    if not os.access(folder, os.W_OK):
        return Check("cache", "warn", f"{folder} is not writable", "set HF_HOME to a folder of your own")
    if free < _CACHE_WANTED:
        return Check("cache", "warn", found, "set HF_HOME to a larger disk: a T5-large pair and its data take 10 GiB")
    return Check("cache", "ok", found)


def check_native() -> Check:
    """Compiles the native decoder if that was not done before, as a run would."""
    from bild_bench.models.native.build import native_library

    problem = native_library().problem
    if problem is None:
        return Check("native", "ok", "the native decoder works")
    return Check(
        "native", "warn", f"no native decoder: {problem}", "install g++, or correct CXX: the CPU decodes faster with it"
    )


def check_load() -> Check:
    from bild_bench.measure.environment import IDLE_LOAD, load_average

    load = load_average()
    if load is None:
        return Check("load", "ok", "not known on this system")
    if load > IDLE_LOAD:
        return Check(
            "load", "warn", f"{load:.2f} in the last minute", "close other programs, or wait: they change times"
        )
    return Check("load", "ok", f"{load:.2f} in the last minute")


# The load comes first, before our own checks raise it.
CHECKS: tuple[Callable[[], Check], ...] = (
    *(check_load, check_python, check_packages, check_torch, check_threads, check_gpu),
    *(check_memory, check_hub, check_results_folder, check_cache_folder, check_native),
)


def _hub_problem(endpoint: str) -> str | None:
    """Why the hub does not answer; None if it does. Takes at most `_HUB_SECONDS`, even if name resolution hangs."""
    from queue import Empty, Queue
    from threading import Thread

    from huggingface_hub import get_session

    answers: Queue[str | None] = Queue()

    def ask() -> None:
        try:
            get_session().head(endpoint, timeout=_HUB_SECONDS)
            answers.put(None)
        except Exception as error:  # whatever the HTTP client raises, the hub was not reached
            answers.put(_one_line(error))

    Thread(target=ask, daemon=True).start()
    try:
        return answers.get(timeout=_HUB_SECONDS)
    except Empty:
        return f"no answer within {_HUB_SECONDS:g} s"


def _nearest_existing(folder: Path) -> Path:
    folder = folder.expanduser().absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())


def _one_line(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}")[:200]


def _print_table(checks: Sequence[Check], possible: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from bild_bench.safe_console import SafeConsole

    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    table = Table("check", "", "found", "what to do")
    for check in checks:
        status = f"[{colours[check.status]}]{check.status}[/]"
        table.add_row(check.name, status, escape(check.found), escape("" if check.advice is None else check.advice))
    console = SafeConsole()
    console.print(table)
    console.print("A run is possible." if possible else "A run is not possible until the failures above are fixed.")
