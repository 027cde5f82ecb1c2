"""The compiled library is loaded only where it is ours and whole; else it is compiled anew."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bild_bench.models.cache import NotOwnError, own_folder
from bild_bench.models.native import build
from bild_bench.models.native.build import native_library
from bild_bench.models.native.kept import kept_library

COMPILING = ["compiling the native decoder (once; a few seconds)"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the compiled decoder in it."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BILD_BENCH_CACHE", str(folder))
        patch.setattr(build, "_FOUND", {})
        if (problem := native_library().problem) is not None:
            pytest.skip(problem)
    return folder


@pytest.fixture
def kept(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library in a cache of its own, for a process that has not looked yet."""
    shutil.copytree(made, tmp_path / "cache")
    monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "_FOUND", {})
    (path,) = (tmp_path / "cache" / "native").glob("*.so")
    return path


def planted(tmp_path: Path) -> Path:
    """A library that leaves a file as soon as it is loaded."""
    source, library = tmp_path / "planted.c", tmp_path / "planted.so"
    source.write_text(f"""
        #include <stdio.h>
        __attribute__((constructor)) static void loaded(void) {{ fclose(fopen("{tmp_path}/loaded", "w")); }}
    """)
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


def announced() -> list[str]:
    lines: list[str] = []
    assert native_library(lines.append).library is not None
    return lines


def cut(path: Path, planted: Path) -> None:
    os.truncate(path, 5000)


def replace(path: Path, planted: Path) -> None:
    shutil.copyfile(planted, path)


def link(path: Path, planted: Path) -> None:
    path.unlink()
    path.symlink_to(planted)


def pipe(path: Path, planted: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def open_to_all(path: Path, planted: Path) -> None:
    path.chmod(0o666)


def without_digest(path: Path, planted: Path) -> None:
    path.with_suffix(".sha256").unlink()


def cut_digest(path: Path, planted: Path) -> None:
    os.truncate(path.with_suffix(".sha256"), 10)


@pytest.mark.parametrize("damage", [cut, replace, link, pipe, open_to_all, without_digest, cut_digest])
def test_a_library_that_is_not_ours_or_not_whole_is_compiled_anew(
    damage: Callable[[Path, Path], None], kept: Path, tmp_path: Path
) -> None:
    whole = kept.read_bytes()
    damage(kept, planted(tmp_path))
    assert kept_library(kept) is None
    assert announced() == COMPILING
    assert not (tmp_path / "loaded").exists()
    assert (kept.read_bytes(), stat.S_IMODE(kept.stat().st_mode)) == (whole, 0o700)


def test_the_planted_library_would_have_been_noticed(tmp_path: Path) -> None:
    ctypes.CDLL(str(planted(tmp_path)))
    assert (tmp_path / "loaded").exists()


def test_a_whole_one_is_loaded_without_the_compiler(kept: Path) -> None:
    assert announced() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_another_users_library_and_folder_are_not_used(kept: Path) -> None:
    os.chown(kept, 12345, 12345)
    assert kept_library(kept) is None
    os.chown(kept, 0, 0)
    assert kept_library(kept) is not None
    os.chown(kept.parent, 12345, 12345)
    assert announced() == COMPILING
    mine = kept.parents[1] / f"native-{os.geteuid()}"
    assert (mine / kept.name).read_bytes() == kept.read_bytes()
    assert stat.S_IMODE(mine.stat().st_mode) == 0o700


def test_a_folder_open_to_all_is_closed_and_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path))
    (tmp_path / "native").mkdir()
    (tmp_path / "native").chmod(0o777)
    assert own_folder("native") == tmp_path / "native"
    assert stat.S_IMODE((tmp_path / "native").stat().st_mode) == 0o700
    (tmp_path / "native").rename(tmp_path / "elsewhere")
    (tmp_path / "native").symlink_to(tmp_path / "elsewhere")
    mine = tmp_path / f"native-{os.geteuid()}"
    assert own_folder("native") == mine
    mine.rmdir()
    mine.symlink_to(tmp_path / "nowhere")
    with pytest.raises(NotOwnError, match=rf"{mine} is a link or somebody else's: remove it, or set BILD_BENCH_CACHE"):
        own_folder("native")


def test_what_a_killed_compilation_left_is_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "slow++"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\n: > "$TMPDIR/scratch.s"\nexec sleep 60\n')
    compiler.chmod(0o755)
    cache = tmp_path / "cache"
    here = os.environ | {"BILD_BENCH_CACHE": str(cache), "CXX": str(compiler)}
    code = "from bild_bench.models.native.build import native_library; native_library()"
    running = subprocess.Popen([sys.executable, "-c", code], env=here, start_new_session=True)
    while not list(cache.glob("native/unfinished-*/scratch.s")):
        assert running.poll() is None
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert len(list(cache.glob("native/unfinished-*"))) == 1
    monkeypatch.setenv("BILD_BENCH_CACHE", str(cache))
    monkeypatch.setattr(build, "_FOUND", {})
    assert announced() == COMPILING
    assert {path.suffix for path in (cache / "native").iterdir()} - {".lock"} == {".sha256", ".so"}


def test_no_home_folder_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", absent)
    monkeypatch.setenv("BILD_BENCH_CACHE", "")
    monkeypatch.setattr(build, "_FOUND", {})
    assert native_library().problem == "no home folder is known, and BILD_BENCH_CACHE is not set"
