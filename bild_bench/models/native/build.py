"""Compiles the native decoder once for each machine, compiler and source; the cache folder keeps what was compiled."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bild_bench.models.cache import own_folder
from bild_bench.models.native.kept import keep, kept_library

SWITCH = "BILD_BENCH_NATIVE"
_SOURCES = Path(__file__).parent
_SECONDS = 300.0
_UNFINISHED = "unfinished-"


@dataclass(frozen=True)
class Native:
    """The loaded library, or why there is none."""

    library: ctypes.CDLL | None
    problem: str | None = None


# What this process found, by CXX and folder, so that a failure is met and told once.
_FOUND: dict[tuple[str | None, str | None], Native] = {}


class _BuildError(Exception):
    """Why the decoder cannot be compiled or loaded, in one line."""


def native_library(announce: Callable[[str], None] = lambda line: None, *, instead: bool = True) -> Native:
    """Load the native decoder; compile it first where that was not done before.

    Args:
        announce: called with one line before the compiler starts, and once where it fails.
        instead: whether something else can take its place; if not, the failure is the caller's to tell.
    """
    if os.environ.get(SWITCH) == "0":
        return Native(None, f"switched off by {SWITCH}=0")
    wanted = os.environ.get("CXX"), os.environ.get("BILD_BENCH_CACHE")
    if wanted not in _FOUND:
        _FOUND[wanted] = _library(announce)
        problem = _FOUND[wanted].problem
        if problem is not None and instead:
            silence = f"(--session fast or {SWITCH}=0 silences this)"
            announce(f"PyTorch is used instead of the native decoder: {problem} {silence}")
    return _FOUND[wanted]


def _library(announce: Callable[[str], None]) -> Native:
    try:
        return Native(_compiled(_compiler(), announce))
    except (_BuildError, OSError, AttributeError) as error:
        return Native(None, " ".join(str(error).split())[:300])


def _compiler() -> tuple[str, ...]:
    """The command that CXX names, or else the first that is found of g++, clang++ and c++.

    Raises:
        _BuildError: there is none. A compiler that somebody named is not silently replaced by another one.
    """
    named = os.environ.get("CXX")
    for name in (named,) if named else ("g++", "clang++", "c++"):
        if (path := shutil.which(name)) is not None:
            return (path,)
    if not named:
        raise _BuildError("no C++ compiler (g++ or clang++) was found")
    try:
        # CXX may have arguments, such as "ccache g++".
        first, *others = shlex.split(named)
    except ValueError:
        first, others = named, []
    if (path := shutil.which(first)) is None:
        raise _BuildError(f"CXX={named} is not a program that can be run")
    return (path, *others)


def _told(compiler: tuple[str, ...]) -> str:
    named = os.environ.get("CXX")
    return f"CXX={named}" if named else compiler[0]


def _compiled(compiler: tuple[str, ...], announce: Callable[[str], None]) -> ctypes.CDLL:
    from filelock import FileLock

    folder = own_folder("native")
    target = folder / f"{_key(compiler)}.so"
    if (library := kept_library(target)) is not None:
        return library
    with FileLock(folder / "native.lock"):
        # Another process may have made it meanwhile.
        if (library := kept_library(target)) is not None:
            return library
        for left in folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        announce("compiling the native decoder (once; a few seconds)")
        with tempfile.TemporaryDirectory(dir=folder, prefix=_UNFINISHED) as space:
            made = Path(space) / target.name
            _compile(compiler, made)
            keep(made, target)
        if (library := kept_library(target)) is None:
            raise _BuildError(
                f"{target} changed after it was written: is the disk full, or does it not record file owners?"
            )
        return library


def _compile(compiler: tuple[str, ...], target: Path) -> None:
    # The compiler's own scratch files go the same way, so that nothing stays of one that is killed.
    _, problem = _run([*compiler, *_flags(), str(_SOURCES / "t5.cpp"), "-o", str(target)], str(target.parent))
    if problem is not None:
        raise _BuildError(f"{_told(compiler)} failed: {problem}")


def _flags() -> list[str]:
    machine = "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"
    # Which products are joined with their sums is said in vectors.h, and not left to the compiler.
    return ["-O3", machine, "-std=c++17", "-ffp-contract=off", "-fPIC", "-shared", "-pthread", "-Wno-psabi"]


def _key(compiler: tuple[str, ...]) -> str:
    """Of all that the machine code depends on."""
    version, problem = _run([*compiler, "--version"])
    if problem is not None:
        raise _BuildError(f"{_told(compiler)} failed when asked for its --version: {problem}")
    sources = sorted([*_SOURCES.glob("*.cpp"), *_SOURCES.glob("*.h")])
    parts = [*compiler, version, *_flags(), _processor(), *(path.read_text(encoding="utf-8") for path in sources)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _processor() -> str:
    """What tells one kind of processor, with its instructions, from another."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    kept = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    return platform.machine() + "".join(line for line in first.splitlines() if line.startswith(kept))


def _run(command: list[str], scratch: str | None = None) -> tuple[str, str | None]:
    """Output, and the problem in one line if there was one."""
    told = {} if scratch is None else {"TMPDIR": scratch}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            env=os.environ | told,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return done.stdout, next((line for line in lines if "error" in line), lines[-1])
    return done.stdout, None
