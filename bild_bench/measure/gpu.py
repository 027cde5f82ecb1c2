"""The state of an NVIDIA GPU around a measurement: clocks, power, heat, and what held it back.

A GPU that is hot, capped or shared gives other times for the same work, so its state belongs beside them. What the
driver does not tell is None, never 0: without a GPU or a driver every figure is None.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

# Words for NVML's clock-event bits (nvml.h, nvmlClocksEventReason*); "throttle reasons" is their older name.
_REASONS = {
    0x001: "idle",
    0x002: "application clocks setting",
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
    0x100: "display clock setting",
}

FIELDS = (
    "name",
    "driver",
    "sm_clock_mhz",
    "sm_clock_max_mhz",
    "memory_clock_mhz",
    "memory_clock_max_mhz",
    "power_w",
    "power_limit_w",
    "temperature_c",
    "throttle_reasons",
    "utilisation_percent",
    "other_processes",
)


def gpu_state(index: int) -> dict[str, object | None]:
    """What the driver says about one GPU now.

    Args:
        index: the GPU as torch counts them ("cuda:<index>"); CUDA_VISIBLE_DEVICES may have the driver count otherwise.

    Returns:
        `FIELDS`: name and driver; clocks in MHz (now and at most); power and its limit in watts; temperature in degrees
        Celsius; `throttle_reasons` in words, comma-separated ("none" if none); utilisation in percent; the number of
        other processes that compute on it. A figure that the driver does not give is None.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return dict.fromkeys(FIELDS)
    try:
        return _read(pynvml, index)
    finally:
        pynvml.nvmlShutdown()


def reasons_in_words(bits: int) -> str:
    """NVML's clock-event bits as words; a bit that is not known here is shown in hexadecimal, not dropped."""
    words = [word for bit, word in _REASONS.items() if bits & bit]
    unknown = bits & ~sum(_REASONS)
    if unknown:
        words.append(f"unknown ({unknown:#x})")
    return ", ".join(words) if words else "none"


def _read(nvml: Any, index: int) -> dict[str, object | None]:
    def ask(question: Callable[[], object]) -> object | None:
        # Boards differ in what they answer: one question without an answer must not cost the others.
        try:
            return question()
        except nvml.NVMLError:
            return None

    driver = ask(nvml.nvmlSystemGetDriverVersion)
    handle = ask(lambda: _handle(nvml, index))
    if handle is None:
        return dict.fromkeys(FIELDS) | {"driver": driver}
    return {
        "name": ask(lambda: nvml.nvmlDeviceGetName(handle)),
        "driver": driver,
        "sm_clock_mhz": ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        "sm_clock_max_mhz": ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
        "memory_clock_mhz": ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        "memory_clock_max_mhz": ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        "power_w": ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        "power_limit_w": ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
        "temperature_c": ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        # The older name, since drivers before 535 do not export the newer one; newer drivers export both.
        "throttle_reasons": ask(lambda: reasons_in_words(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))),
        "utilisation_percent": ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        "other_processes": ask(lambda: _other_processes(nvml, handle)),
    }


def _handle(nvml: Any, index: int) -> Any:
    uuid = _torch_uuid(index)
    if uuid is None:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")


def _torch_uuid(index: int) -> str | None:
    """The GPU behind torch's index; None where torch cannot use it, so that the driver's own order is all there is."""
    import torch

    try:
        return str(torch.cuda.get_device_properties(index).uuid)
    except (RuntimeError, AssertionError):  # no driver, a build without CUDA, no such index
        return None


def _other_processes(nvml: Any, handle: Any) -> int | None:
    pids: list[int] = [process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    # In a container the driver may number processes as its host does: with our work on the GPU and our number not
    # in the list, nobody can say which of them are others'.
    if _holds_context() and os.getpid() not in pids:
        return None
    return sum(pid != os.getpid() for pid in pids)


def _holds_context() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())
