from __future__ import annotations

import json
import subprocess
import sys
import threading
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
import typer
from huggingface_hub import constants
from typer.testing import CliRunner

from bild_bench.cli import doctor as command
from bild_bench.cli.doctor import Check
from bild_bench.measure import environment, gpu, machine
from bild_bench.models.native import build

GIB = 2**30


def run(monkeypatch, checks, *arguments):
    monkeypatch.setattr(command, "CHECKS", tuple(lambda check=check: check for check in checks))
    app = typer.Typer()
    app.command("doctor")(command.doctor)
    return CliRunner().invoke(app, list(arguments))


def test_warnings_do_not_make_a_run_impossible(monkeypatch):
    result = run(monkeypatch, [Check("load", "warn", "3.20", "wait [a bit]"), Check("python", "ok", "3.11.7")])
    assert result.exit_code == 0
    assert "wait [a bit]" in result.stdout
    assert "A run is possible." in result.stdout


def test_a_failure_makes_the_exit_code_one(monkeypatch):
    checks = [Check("python", "ok", "3.11.7"), Check("torch", "fail", "missing", "install torch")]
    result = run(monkeypatch, checks)
    assert result.exit_code == 1
    assert "install torch" in result.stdout
    assert "not possible" in result.stdout


def test_json_has_every_finding_and_the_same_exit_code(monkeypatch):
    checks = [Check("python", "ok", "3.11.7"), Check("torch", "fail", "missing", "install torch")]
    result = run(monkeypatch, checks, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "possible": False,
        "checks": [
            {"name": "python", "status": "ok", "found": "3.11.7", "advice": None},
            {"name": "torch", "status": "fail", "found": "missing", "advice": "install torch"},
        ],
    }


def test_on_this_machine_every_check_finds_something(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    checks = [check() for check in command.CHECKS]
    names = [check.name for check in checks]
    assert sorted(names) == sorted(
        ["load", "python", "packages", "torch", "threads", "gpu", "memory", "hub", "results", "cache", "native"]
    )
    assert all(check.found for check in checks)
    assert all((check.advice is None) == (check.status == "ok") for check in checks)
    assert torch.__version__ in next(check.found for check in checks if check.name == "torch")


def test_the_command_is_light_to_import():
    code = (
        "import sys, bild_bench.cli.doctor; "
        "sys.exit(str([m for m in ('torch', 'transformers', 'huggingface_hub', 'pandas') if m in sys.modules] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def test_missing_packages_fail(monkeypatch):
    monkeypatch.setattr(command, "_MODULES", ("json", "no_such_module_here"))
    check = command.check_packages()
    assert check.status == "fail"
    assert check.found == "missing: no_such_module_here"


def test_a_broken_torch_fails_and_is_no_traceback(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # makes `import torch` raise ImportError
    assert command.check_torch().status == "fail"
    assert command.check_threads().status == "warn"
    assert command.check_gpu().status == "warn"


@pytest.mark.parametrize(
    ("threads", "cores", "quota", "status", "advice"),
    [
        (4, 4, None, "ok", None),
        (1, 4, None, "ok", None),
        (8, 4, None, "warn", "set OMP_NUM_THREADS=4"),
        (4, 4, 2.5, "warn", "set OMP_NUM_THREADS=2"),
        (2, 4, 0.5, "warn", "set OMP_NUM_THREADS=1"),
        (1, 4, 0.5, "ok", None),
        (4, None, None, "ok", None),
    ],
)
def test_threads_against_cores(monkeypatch, threads, cores, quota, status, advice):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(machine, "usable_cores", lambda: cores)
    monkeypatch.setattr(machine, "cpu_quota", lambda: quota)
    check = command.check_threads()
    assert (check.status, check.advice) == (status, advice)


@pytest.mark.parametrize(
    ("usable", "state", "status", "said"),
    [
        (False, {}, "ok", "no NVIDIA GPU"),
        (False, {"name": "Tesla T4"}, "warn", "Tesla T4, which this torch cannot use"),
        (True, {"other_processes": 0, "throttle_reasons": "idle"}, "ok", "driver 570"),
        (True, {"other_processes": None, "throttle_reasons": None}, "ok", "driver 570"),
        (True, {"other_processes": 2}, "warn", "2 other processes"),
        (True, {"throttle_reasons": "software thermal slowdown"}, "warn", "throttled: software thermal slowdown"),
    ],
)
def test_gpu(monkeypatch, usable, state, status, said):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Tesla T4")
    monkeypatch.setattr(gpu, "gpu_state", lambda index: dict.fromkeys(gpu.FIELDS) | {"driver": "570"} | state)
    check = command.check_gpu()
    assert check.status == status
    assert said in check.found


@pytest.mark.parametrize(
    ("available", "total", "status", "found"),
    [
        (GIB // 2, 64 * GIB, "fail", "0.5 GiB available"),
        (4 * GIB, 64 * GIB, "warn", "4.0 GiB available"),
        (32 * GIB, 64 * GIB, "ok", "32.0 GiB available"),
        (0, 64 * GIB, "fail", "0.0 GiB available"),
        (None, 64 * GIB, "ok", "64.0 GiB in all"),
        (None, None, "ok", "not known"),
    ],
)
def test_memory(monkeypatch, available, total, status, found):
    monkeypatch.setattr(machine, "available_memory", lambda: available)
    monkeypatch.setattr(machine, "total_memory", lambda: total)
    check = command.check_memory()
    assert (check.status, check.found) == (status, found)


@pytest.mark.parametrize(("load", "status"), [(None, "ok"), (0.0, "ok"), (0.4, "ok"), (1.5, "warn")])
def test_load(monkeypatch, load, status):
    monkeypatch.setattr(environment, "load_average", lambda: load)
    assert command.check_load().status == status


@pytest.mark.parametrize(
    ("free", "results", "cache"), [(GIB // 100, "fail", "warn"), (2 * GIB, "ok", "warn"), (50 * GIB, "ok", "ok")]
)
def test_disk_space(monkeypatch, tmp_path, free, results, cache):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "not" / "there" / "yet"))
    monkeypatch.setattr(command.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    check = command.check_results_folder()
    assert check.status == results
    assert str(tmp_path) in check.found  # the nearest folder that exists, and none was made
    assert command.check_cache_folder().status == cache
    assert list(tmp_path.iterdir()) == []


def test_folders_that_cannot_be_written_to(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.os, "access", lambda folder, mode: False)
    assert command.check_results_folder().status == "fail"
    assert command.check_cache_folder().status == "warn"


def test_native(monkeypatch):
    monkeypatch.setattr(build, "native_library", lambda: build.Native(None, "no C++ compiler was found"))
    check = command.check_native()
    assert (check.status, check.found) == ("warn", "no native decoder: no C++ compiler was found")
    monkeypatch.setattr(build, "native_library", lambda: build.Native(object()))
    assert command.check_native() == Check("native", "ok", "the native decoder works")


class FakeSession:
    def __init__(self, head):
        self.head = head


def use_session(monkeypatch, head):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "get_session", lambda: FakeSession(head))


def test_a_hub_that_answers(monkeypatch):
    asked = []
    use_session(monkeypatch, lambda url, timeout: asked.append((url, timeout)))
    assert command.check_hub().status == "ok"
    assert asked == [(constants.ENDPOINT, 3.0)]


def test_a_hub_that_cannot_be_reached_warns_with_its_cause(monkeypatch):
    def refuse(url, timeout):
        raise ConnectionError("Name or service\nnot known")

    use_session(monkeypatch, refuse)
    check = command.check_hub()
    assert check.status == "warn"
    assert "ConnectionError: Name or service not known" in check.found


def test_a_hub_that_hangs_is_not_waited_for(monkeypatch):
    release = threading.Event()
    use_session(monkeypatch, lambda url, timeout: release.wait(60))
    monkeypatch.setattr(command, "_HUB_SECONDS", 0.05)
    try:
        assert "no answer within 0.05 s" in command.check_hub().found
    finally:
        release.set()


def test_offline_by_choice_asks_nobody(monkeypatch):
    use_session(monkeypatch, lambda url, timeout: pytest.fail("the hub was asked"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert command.check_hub().status == "ok"
