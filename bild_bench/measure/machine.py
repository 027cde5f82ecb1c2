"""What the operating system says about the CPU, the memory and the container; None where it does not say."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

_CPUINFO = "/proc/cpuinfo"
_CPU_FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "asimd", "bf16", "sve")


def cpu_model() -> str | None:
    """The CPU's name as the system gives it, such as "Intel(R) Xeon(R) Platinum 8480C"."""
    if sys.platform == "darwin":
        return _output_of("sysctl", "-n", "machdep.cpu.brand_string")
    name = _proc_value(_CPUINFO, "model name")
    return name if name is not None else platform.processor() or None


def cpu_flags() -> str | None:
    """Those instruction sets that decide which kernels run, space-separated in a fixed order; None if not known."""
    for key in ("flags", "Features"):  # x86 and Arm name the line differently
        found = _proc_value(_CPUINFO, key)
        if found is not None:
            held = set(found.split())
            return " ".join(flag for flag in _CPU_FLAGS if flag in held)
    return None


def usable_cores() -> int | None:
    """Logical cores that this process may run on (its affinity), not all that the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def cpu_quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Cores' worth of CPU time that the container grants (cgroup v2 or v1); None without a limit.

    Args:
        root: where the container's control groups are mounted.
    """
    try:
        if (root / "cpu.max").exists():
            quota, period = (root / "cpu.max").read_text().split()
        else:
            quota = (root / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text().strip()
        return None if quota in ("max", "-1") else int(quota) / int(period)
    except (OSError, ValueError):
        return None


def total_memory() -> int | None:
    """Bytes of main memory of the machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def available_memory() -> int | None:
    """Bytes that can be had without swapping, as Linux estimates them; None elsewhere."""
    found = _proc_value("/proc/meminfo", "MemAvailable")
    return None if found is None else int(found.split()[0]) * 1024


def peak_resident_memory() -> int | None:
    """The most main memory that this process has held since it started, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def git_state(file: Path) -> tuple[str | None, bool | None]:
    """The commit of the checkout that tracks a file, and whether its tracked files were changed; else (None, None)."""
    in_folder = ("git", "-C", str(file.parent))
    # A package installed below somebody's project lies in that project's checkout without being part of it.
    if _output_of(*in_folder, "ls-files", "--error-unmatch", file.name) is None:
        return None, None
    revision = _output_of(*in_folder, "rev-parse", "HEAD")
    changes = _output_of(*in_folder, "status", "--porcelain", "--untracked-files=no")
    return revision, None if changes is None else changes != ""


def _output_of(*command: str) -> str | None:
    """What a command prints; None if it is missing, fails or takes more than five seconds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _proc_value(path: str, key: str) -> str | None:
    """The value of the first `key : value` line of a Linux /proc file."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip()
    return None
