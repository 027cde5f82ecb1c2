"""The native decoder is compiled once, and left out with one remark where that is not possible."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from bild_bench.cli.doctor import check_native
from bild_bench.errors import DataError
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.native import build
from bild_bench.models.native.build import native_library
from bild_bench.models.pair import load_pair
from tests.checkpoints import save_t5


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and a process that has not looked yet."""
    monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "_FOUND", {})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A cache folder with the compiled decoder in it, and what was announced meanwhile."""
    folder, lines = tmp_path_factory.mktemp("made"), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BILD_BENCH_CACHE", str(folder))
        patch.setattr(build, "_FOUND", {})
        if native_library(lines.append).library is None:
            pytest.skip(lines[-1])
    return folder, lines


@pytest.fixture
def compiled(made: tuple[Path, list[str]], tmp_path: Path) -> None:
    """The cache holds the decoder already."""
    shutil.copytree(made[0], tmp_path / "cache")


def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    path = tmp_path / "fake++"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(path))
    return path


def left_out(problem: str) -> str:
    """The one line that a user reads."""
    silence = "(--session fast or BILD_BENCH_NATIVE=0 silences this)"
    return f"PyTorch is used instead of the native decoder: {problem} {silence}"


def opened(folder: Path, **options: Any) -> tuple[dict[str, Any], list[str]]:
    lines: list[str] = []
    choice = PairChoice("one", ModelChoice(str(folder)), None, "")
    pair = load_pair(choice, ["large"], device="cpu", announce=lines.append, **options)
    return pair.describe()["large"], lines


def test_it_is_compiled_once(made: tuple[Path, list[str]], compiled: None) -> None:
    assert made[1] == ["compiling the native decoder (once; a few seconds)"]
    lines: list[str] = []  # what another process would announce
    assert native_library(lines.append).library is not None
    assert lines == []


def test_nothing_half_made_is_left_behind(made: tuple[Path, list[str]]) -> None:
    names = sorted(path.suffix for path in (made[0] / "native").iterdir())
    assert names in ([".sha256", ".so"], [".lock", ".sha256", ".so"])


def test_other_sources_make_another_library(compiled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    for path in [*build._SOURCES.glob("*.h"), *build._SOURCES.glob("*.cpp")]:
        (sources / path.name).write_bytes(path.read_bytes() + b"\n// changed\n")
    monkeypatch.setattr(build, "_SOURCES", sources)
    lines: list[str] = []
    assert native_library(lines.append).library is not None
    assert lines == ["compiling the native decoder (once; a few seconds)"]


def test_the_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILD_BENCH_NATIVE", "0")
    record, lines = opened(save_t5(tmp_path / "t5"))
    assert (record["session"], record["session_not_native"]) == ("fast", "switched off by BILD_BENCH_NATIVE=0")
    assert lines == []
    assert not (tmp_path / "cache").exists()


def test_no_compiler_is_one_remark_and_the_fast_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    problem = "no C++ compiler (g++ or clang++) was found"
    folder = save_t5(tmp_path / "t5")
    record, lines = opened(folder)
    assert (record["session"], record["session_not_native"]) == ("fast", problem)
    assert lines == [left_out(problem)]
    again, silent = opened(folder)
    assert (again, silent) == (record, [])
    assert check_native().status == "warn"


def test_a_compiler_that_fails_is_one_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'case "$1" in --version) echo fake 1;; *) echo "x.h:1: error: no such thing" >&2; exit 1;; esac'
    compiler = fake_compiler(tmp_path, monkeypatch, script)
    lines: list[str] = []
    found = native_library(lines.append)
    assert found.library is None
    assert found.problem == f"CXX={compiler} failed: x.h:1: error: no such thing"
    assert lines[1:] == [left_out(found.problem)]
    assert native_library(lines.append) is found
    assert len(lines) == 2


@pytest.mark.parametrize("named", ["/nonexistent", "/nonexistent -O2", '"unbalanced'])
def test_a_compiler_that_is_not_there_is_named_and_not_replaced(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", named)
    lines: list[str] = []
    assert native_library(lines.append).problem == f"CXX={named} is not a program that can be run"
    assert lines == [left_out(f"CXX={named} is not a program that can be run")]


def test_a_compiler_that_always_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = fake_compiler(tmp_path, monkeypatch, "exit 1")
    record, lines = opened(save_t5(tmp_path / "t5"))
    problem = f"CXX={compiler} failed when asked for its --version: exit code 1"
    assert (record["session"], record["session_not_native"]) == ("fast", problem)
    assert lines == [left_out(problem)]
    assert opened(tmp_path / "t5", session="fast")[1] == [], "silenced"
    with pytest.raises(DataError, match=r"the native session cannot run here: CXX=.* failed"):
        opened(tmp_path / "t5", session="native")


def test_cxx_may_have_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = fake_compiler(tmp_path, monkeypatch, "exit 1")
    monkeypatch.setenv("CXX", f"{compiler} -O2 'a b'")
    assert build._compiler() == (str(compiler), "-O2", "a b")


def test_a_compiler_that_makes_no_library_is_one_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'while [ "$1" != -o ] && [ $# -gt 0 ]; do shift; done; if [ $# -gt 0 ]; then : > "$2"; fi'
    fake_compiler(tmp_path, monkeypatch, script)
    found = native_library()
    assert found.library is None
    assert found.problem is not None
    assert ".so" in found.problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written_is_one_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    monkeypatch.setenv("BILD_BENCH_CACHE", str(locked))
    assert native_library().library is None


def test_a_file_where_the_cache_should_be_is_one_remark(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("", encoding="utf-8")
    found = native_library()
    assert found.library is None
    assert found.problem is not None


def test_auto_takes_it_and_records_it(compiled: None, tmp_path: Path) -> None:
    folder = save_t5(tmp_path / "t5")
    for session in ("auto", "native"):
        record, _ = opened(folder, session=session)
        assert (record["session"], record["session_not_native"]) == ("native", None)
    record, _ = opened(folder, session="fast")
    assert (record["session"], record["session_not_native"]) == ("fast", None)


@pytest.mark.parametrize(
    ("shape", "dtype", "problem"),
    [
        ({}, "float64", "it computes in float32, not in float64"),
        ({}, "bfloat16", "it computes in float32, not in bfloat16"),
        ({"feed_forward_proj": "gated-silu"}, "float32", "it does not know the activation silu"),
        ({"feed_forward_proj": "gelu"}, "float32", "it does not know the activation gelu"),
    ],
)
def test_what_it_cannot_run_is_left_to_the_fast_session(
    shape: dict[str, Any], dtype: str, problem: str, tmp_path: Path
) -> None:
    folder = save_t5(tmp_path / "t5", **shape)
    record, lines = opened(folder, dtype=dtype)
    assert record["session"] == "fast"
    assert record["session_not_native"].startswith(problem)
    assert lines == []
    with pytest.raises(DataError, match=problem):
        opened(folder, dtype=dtype, session="native")


def test_doctor_tells_that_it_is_there(compiled: None) -> None:
    check = check_native()
    assert (check.name, check.status, check.advice) == ("native", "ok", None)
