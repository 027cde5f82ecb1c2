"""What a measurement ran on, and whether the machine was its own.

A time means nothing without the machine, the threads and the library versions behind it, and times of one machine must
never be reused on another. What cannot be found out is None, never a guess.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from bild_bench.measure import machine
from bild_bench.measure.gpu import FIELDS as GPU_FIELDS
from bild_bench.measure.gpu import gpu_state

_PACKAGES = (
    *("torch", "transformers", "datasets", "tokenizers", "safetensors", "numpy"),
    *("sacrebleu", "rouge-score", "sentencex", "nvidia-ml-py"),
)
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND"),
    *("OMP_WAIT_POLICY", "KMP_AFFINITY", "KMP_BLOCKTIME"),
)

# What a time depends on beside the code: reused only where all of these agree.
_FINGERPRINT = (
    *("device", "cpu_model", "cpu_flags", "cores", "cpu_quota", "threads"),
    *("gpu_name", "gpu_driver", "cuda", "torch", "python"),
)

# A load below this beyond our own threads is what an idle desktop or server shows.
IDLE_LOAD = 0.5


def describe_environment(device: str) -> dict[str, object]:
    """A flat record of the software and the machine, of JSON values only.

    Package versions under their own names ("bild_bench", "torch", "rouge-score", …) and "python"; "git_revision" and
    "git_dirty" of the checkout that this package runs from (None outside one); "os"; "device"; "cpu_model",
    "cpu_flags", "cores" (that this process may use), "cpu_quota" (cores' worth of time that the container grants),
    "threads" and "interop_threads" (torch's), the thread variables in lower case; "load" (1 minute); "memory_bytes" and
    "memory_available_bytes"; and, for a CUDA device, "cuda" and "gpu_…" (see `gpu_state`).

    Args:
        device: the torch device measured on. Unless it is CUDA every GPU field is None, even if a GPU is there.
    """
    import torch

    on_gpu = device.startswith("cuda")
    index = torch.device(device).index
    gpu = gpu_state(0 if index is None else index) if on_gpu else dict.fromkeys(GPU_FIELDS)
    revision, dirty = machine.git_state(Path(__file__))
    return {
        "bild_bench": _version("bild-bench"),
        **{name: _version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "git_revision": revision,
        "git_dirty": dirty,
        "os": platform.platform(),
        "device": device,
        "cpu_model": machine.cpu_model(),
        "cpu_flags": machine.cpu_flags(),
        "cores": machine.usable_cores(),
        "cpu_quota": machine.cpu_quota(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        **{name.lower(): os.environ.get(name) for name in _THREAD_VARIABLES},
        "load": load_average(),
        "memory_bytes": machine.total_memory(),
        "memory_available_bytes": machine.available_memory(),
        "cuda": torch.version.cuda if on_gpu else None,
        **{f"gpu_{name}": value for name, value in gpu.items()},
    }


def machine_fingerprint(environment: Mapping[str, object]) -> str:
    """12 hexadecimal digits over what times depend on: times are reused only where it is the same.

    It covers device, CPU, usable cores, quota, threads, GPU, driver, CUDA, torch and Python, but nothing that changes
    from minute to minute (load, clocks, free memory).

    Args:
        environment: a record of `describe_environment`, also after a round trip through JSON.
    """
    # "cuda" and "cuda:0" are one device; which GPU that is says its name.
    kind = str(environment["device"]).partition(":")[0]
    relevant = {name: environment[name] for name in _FINGERPRINT} | {"device": kind}
    return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()[:12]


def load_average() -> float | None:
    """The 1-minute load average of the whole machine; None where the system has none."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def busy_reason(before: float | None, after: float | None, threads: int) -> str | None:
    """A sentence if others kept the machine busy while we measured, else None.

    Before a run none of the load is ours (if another run has just ended, that start was not a quiet one either); after
    it up to `threads` of it are.

    Args:
        before: `load_average()` before the run, None if not known.
        after: the same after the run.
        threads: how many threads we computed on.
    """
    others_before = 0.0 if before is None else before
    others_after = 0.0 if after is None else after - threads
    others = max(others_before, others_after)
    if others <= IDLE_LOAD:
        return None
    when = "before the run" if others_before >= others_after else f"after it, beyond our own {threads} threads"
    return f"The machine was busy: a load of {others:.1f} {when}; times may be too long, and differ from run to run."


def peak_memory(device: str) -> dict[str, int | None]:
    """The most memory held so far, in bytes: of this process ("rss_peak_bytes"), on the GPU ("gpu_peak_bytes").

    Both are high-water marks since the process started (for the GPU: since the last
    `torch.cuda.reset_peak_memory_stats`); they do not fall. None where not known or not on CUDA.
    """
    gpu_peak = None
    if device.startswith("cuda"):
        import torch

        gpu_peak = int(torch.cuda.max_memory_allocated(device))
    return {"rss_peak_bytes": machine.peak_resident_memory(), "gpu_peak_bytes": gpu_peak}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
