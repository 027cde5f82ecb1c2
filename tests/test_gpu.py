from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from bild_bench.measure import gpu
from bild_bench.measure.gpu import FIELDS, gpu_state, reasons_in_words


class FakeNVMLError(Exception):
    pass


class FakeNvml:
    """The part of pynvml that is asked, for one GPU; names in `silent` answer as a board that does not support them."""

    NVMLError = FakeNVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, silent: tuple[str, ...] = (), pids: tuple[int, ...] = ()) -> None:
        self.silent, self.pids, self.open, self.asked_for = silent, pids, 0, None

    def __getattribute__(self, name: str) -> object:
        if name.startswith("nvml") and name in self.silent:
            raise FakeNVMLError(name)
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.86.10"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if index != 0:
            raise FakeNVMLError("invalid argument")
        self.asked_for = index
        return "handle"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        self.asked_for = uuid
        return "handle"

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "Tesla T4"

    def nvmlDeviceGetClockInfo(self, handle: str, clock: int) -> int:
        return {1: 585, 2: 5000}[clock]

    def nvmlDeviceGetMaxClockInfo(self, handle: str, clock: int) -> int:
        return {1: 1590, 2: 5001}[clock]

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 26_500  # milliwatts

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        return 70_000

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 84

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return 0x24

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        return SimpleNamespace(gpu=0, memory=3)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid) for pid in self.pids]


def use(monkeypatch: pytest.MonkeyPatch, fake: FakeNvml, uuid: str | None = None, context: bool = False) -> FakeNvml:
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(gpu, "_torch_uuid", lambda index: uuid)
    monkeypatch.setattr(gpu, "_holds_context", lambda: context)
    return fake


def test_every_figure_in_its_unit(monkeypatch):
    fake = use(monkeypatch, FakeNvml(pids=(os.getpid(), 4_000_001, 4_000_002)))
    assert gpu_state(0) == {
        "name": "Tesla T4",
        "driver": "570.86.10",
        "sm_clock_mhz": 585,
        "sm_clock_max_mhz": 1590,
        "memory_clock_mhz": 5000,
        "memory_clock_max_mhz": 5001,
        "power_w": 26.5,
        "power_limit_w": 70.0,
        "temperature_c": 84,
        "throttle_reasons": "software power cap, software thermal slowdown",
        "utilisation_percent": 0,
        "other_processes": 2,
    }
    assert tuple(gpu_state(0)) == FIELDS
    assert fake.open == 0  # every initialisation was undone


def test_one_silent_sensor_does_not_cost_the_others(monkeypatch):
    use(monkeypatch, FakeNvml(silent=("nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksThrottleReasons")))
    state = gpu_state(0)
    assert state["power_w"] is None
    assert state["throttle_reasons"] is None
    assert state["temperature_c"] == 84
    assert state["utilisation_percent"] == 0  # zero is a figure, not a gap


def test_without_a_driver_every_figure_is_unknown(monkeypatch):
    use(monkeypatch, FakeNvml(silent=("nvmlInit",)))
    assert gpu_state(0) == dict.fromkeys(FIELDS)


def test_without_such_a_gpu_only_the_driver_is_known(monkeypatch):
    fake = use(monkeypatch, FakeNvml())
    assert gpu_state(7) == dict.fromkeys(FIELDS) | {"driver": "570.86.10"}
    assert fake.open == 0


def test_the_gpu_is_the_one_that_torch_counts(monkeypatch):
    fake = use(monkeypatch, FakeNvml(), uuid="1234-abcd")
    assert gpu_state(3)["name"] == "Tesla T4"
    assert fake.asked_for == "GPU-1234-abcd"


def test_without_torch_on_the_gpu_the_drivers_index_is_used(monkeypatch):
    fake = use(monkeypatch, FakeNvml())
    gpu_state(0)
    assert fake.asked_for == 0


@pytest.mark.parametrize(
    ("pids", "context", "others"),
    [
        ((), False, 0),
        ((4_000_001,), False, 1),
        ((os.getpid(),), True, 0),
        ((4_000_001,), True, None),  # a container: we are on the GPU, under a number that is not ours
    ],
)
def test_processes_of_others(monkeypatch, pids, context, others):
    use(monkeypatch, FakeNvml(pids=pids), context=context)
    assert gpu_state(0)["other_processes"] == others


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, "none"),
        (0x1, "idle"),
        (0x8 | 0x40, "hardware slowdown, hardware thermal slowdown"),
        (0x4 | 0x8000, "software power cap, unknown (0x8000)"),
    ],
)
def test_reasons_are_words(bits, words):
    assert reasons_in_words(bits) == words


def test_words_stand_for_the_bits_that_the_driver_defines():
    import pynvml

    assert reasons_in_words(pynvml.nvmlClocksEventReasonSwPowerCap) == "software power cap"
    assert reasons_in_words(pynvml.nvmlClocksEventReasonHwThermalSlowdown) == "hardware thermal slowdown"
    assert reasons_in_words(pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown) == "hardware power brake"
    assert reasons_in_words(pynvml.nvmlClocksEventReasonApplicationsClocksSetting) == "application clocks setting"
    assert "unknown" not in reasons_in_words(pynvml.nvmlClocksEventReasonAll)


def test_this_machine_answers_without_an_error():
    assert tuple(gpu_state(0)) == FIELDS
