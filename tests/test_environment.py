from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time

import pytest
import torch

from bild_bench.measure import clock, environment, machine
from bild_bench.measure.environment import (
    busy_reason,
    describe_environment,
    load_average,
    machine_fingerprint,
    peak_memory,
)
from bild_bench.measure.gpu import FIELDS


@pytest.fixture(scope="module")
def here():
    return describe_environment("cpu")


def test_the_record_is_flat_json_and_true_of_this_process(here):
    assert json.loads(json.dumps(here)) == here
    assert not any(isinstance(value, dict | list) for value in here.values())
    assert here["torch"] == torch.__version__
    assert here["python"] == platform.python_version()
    assert here["threads"] == torch.get_num_threads()
    assert here["device"] == "cpu"


def test_packages_that_decide_a_figure_are_named_with_their_versions(here):
    for package in ("bild_bench", "transformers", "datasets", "tokenizers", "sacrebleu", "rouge-score", "sentencex"):
        assert here[package][0].isdigit(), package


def test_on_a_cpu_every_gpu_field_is_unknown(here):
    assert [here[f"gpu_{field}"] for field in FIELDS] == [None] * len(FIELDS)
    assert here["cuda"] is None


def test_on_a_gpu_its_state_is_in_the_record(monkeypatch):
    asked = []

    def state(index):
        asked.append(index)
        return dict.fromkeys(FIELDS) | {"name": "Tesla T4", "driver": "570"}

    monkeypatch.setattr(environment, "gpu_state", state)
    assert describe_environment("cuda:1")["gpu_name"] == "Tesla T4"
    assert describe_environment("cuda")["gpu_driver"] == "570"
    assert asked == [1, 0]


def test_thread_variables_are_recorded_and_absent_ones_are_unknown(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    record = describe_environment("cpu")
    assert record["omp_num_threads"] == "3"
    assert record["mkl_num_threads"] is None


def test_fingerprint_is_twelve_digits_and_survives_json(here):
    fingerprint = machine_fingerprint(here)
    assert len(fingerprint) == 12
    assert int(fingerprint, 16) >= 0
    assert machine_fingerprint(json.loads(json.dumps(here))) == fingerprint


@pytest.mark.parametrize(
    "field", ["cpu_model", "cpu_flags", "cores", "cpu_quota", "threads", "gpu_name", "gpu_driver", "torch", "device"]
)
def test_fingerprint_changes_with_what_times_depend_on(here, field):
    assert machine_fingerprint(here | {field: "another"}) != machine_fingerprint(here)


@pytest.mark.parametrize("field", ["load", "memory_available_bytes", "git_revision", "gpu_temperature_c", "sacrebleu"])
def test_fingerprint_ignores_what_changes_by_the_minute_or_not_the_times(here, field):
    assert machine_fingerprint(here | {field: "another"}) == machine_fingerprint(here)


def test_cuda_and_its_first_gpu_are_one_device(here):
    assert machine_fingerprint(here | {"device": "cuda"}) == machine_fingerprint(here | {"device": "cuda:0"})


@pytest.mark.parametrize(
    ("before", "after", "threads"),
    [(0.0, 2.0, 2), (0.3, 2.4, 2), (None, None, 2), (None, 4.0, 4), (0.1, None, 1), (0.0, 0.0, 8)],
)
def test_our_own_threads_are_not_others(before, after, threads):
    assert busy_reason(before, after, threads) is None


@pytest.mark.parametrize(
    ("before", "after", "threads", "said"),
    [
        (1.5, 2.0, 2, "a load of 1.5 before"),
        (0.0, 3.2, 2, "a load of 1.2 after it, beyond our own 2 threads"),
        (0.6, 3.2, 2, "1.2 after"),
        (None, 9.0, 1, "8.0 after"),
    ],
)
def test_a_busy_machine_is_said_in_a_sentence(before, after, threads, said):
    reason = busy_reason(before, after, threads)
    assert said in reason
    assert reason.endswith(".")


def test_a_system_without_load_average(monkeypatch):
    monkeypatch.delattr(os, "getloadavg")
    assert load_average() is None


def test_peak_memory_is_in_bytes():
    # 64 MiB that are written to must show; in KiB the figure would be a thousand times too small.
    held = bytearray(os.urandom(1)) * (64 * 2**20)
    peak = peak_memory("cpu")
    assert len(held) < peak["rss_peak_bytes"] < machine.total_memory()
    assert peak["gpu_peak_bytes"] is None


def test_peak_memory_of_a_gpu_is_torchs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: {"cuda:1": 123}[device])
    assert peak_memory("cuda:1")["gpu_peak_bytes"] == 123


def git(folder, *words):
    identity = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_git_state_of_a_clean_and_a_changed_checkout(tmp_path):
    file = tmp_path / "tracked.py"
    file.write_text("one")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "tracked.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    revision = git(tmp_path, "rev-parse", "HEAD")
    assert machine.git_state(file) == (revision, False)
    file.write_text("two")
    assert machine.git_state(file) == (revision, True)
    installed = tmp_path / "installed.py"  # lies in somebody's checkout, is not part of it
    installed.write_text("x")
    assert machine.git_state(installed) == (None, None)


def test_git_state_outside_a_checkout_or_without_git(tmp_path, monkeypatch):
    file = tmp_path / "file.py"
    file.write_text("x")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert machine.git_state(file) == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.git_state(file) == (None, None)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({}, None),
    ],
)
def test_the_containers_share_of_the_cpu(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine.cpu_quota(tmp_path) == cores


def test_cpu_flags_are_those_that_choose_kernels(tmp_path, monkeypatch):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t\t: fpu amx_tile sse avx2 avx512f\n")
    monkeypatch.setattr(machine, "_CPUINFO", str(cpuinfo))
    monkeypatch.setattr(sys, "platform", "linux")
    assert machine.cpu_flags() == "avx2 avx512f amx_tile"
    assert machine.cpu_model() == "Some CPU @ 2.0GHz"


def test_memory_that_is_available_is_part_of_the_whole():
    assert machine.total_memory() > 2**28
    if sys.platform != "linux":
        pytest.skip("only Linux estimates the memory that is available")
    assert 0 < machine.available_memory() <= machine.total_memory()


def test_the_clock_is_monotonic_seconds():
    before = time.perf_counter()
    read = clock.now("cpu")
    assert before <= read <= time.perf_counter()


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps"])
def test_the_clock_waits_for_the_device_before_it_is_read(monkeypatch, device):
    events = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: events.append(device))
    monkeypatch.setattr(torch.mps, "synchronize", lambda: events.append("mps"))
    monkeypatch.setattr(time, "perf_counter", lambda: events.append("read") or 5.0)
    assert clock.now(device) == 5.0
    assert events == [device, "read"]


def test_the_clock_needs_no_torch_on_a_cpu():
    code = "import sys; from bild_bench.measure.clock import now; now('cpu'); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
