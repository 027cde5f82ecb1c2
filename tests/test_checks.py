"""Numbers and paths of a request: checked and made plain before anything is read or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bild_bench import checks
from bild_bench.checks import check_seed, check_threads, folder
from bild_bench.errors import UsageError
from bild_bench.setup import Request


@pytest.mark.parametrize("seed", [0, 1, 4294967295])
def test_a_seed_that_every_library_takes_is_right(seed: int) -> None:
    check_seed(seed)


@pytest.mark.parametrize("seed", [-1, 4294967296, 1.0, "1", True, None])
def test_any_other_seed_is_refused(seed: object) -> None:
    with pytest.raises(UsageError, match=r"^--seed: .*: must be a whole number from 0 to 4294967295; leave"):
        check_seed(seed)


def test_threads_may_be_four_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "usable_cores", lambda: 3)
    for threads in (None, 1, 12):
        check_threads(threads)
    with pytest.raises(UsageError, match=r"^--threads: 13: must be at most 12, 4 times the usable cores \(3\); leave"):
        check_threads(13)
    monkeypatch.setattr(checks, "usable_cores", lambda: None)
    check_threads(13)
    with pytest.raises(UsageError, match="--threads: 0: must be 1 or more"):
        check_threads(0)


def test_a_home_directory_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert folder("--out", "~/runs") == Path("/home/someone/runs")
    assert folder("--out", Path("a/~b")) == Path("a/~b")
    request = Request("iwslt17", out=Path("~/a"), results=Path("~/b"), extend=Path("~/c"))
    assert [request.out, request.results, request.extend] == [Path(f"/home/someone/{name}") for name in "abc"]


@pytest.mark.parametrize(("path", "problem"), [("", "is empty"), ("~no-such-user/x", "names no user's home")])
def test_a_path_that_leads_nowhere_is_refused(path: str, problem: str) -> None:
    with pytest.raises(UsageError, match=f"^--out: '{path}': {problem}; "):
        folder("--out", path)


def test_paths_may_be_given_as_text_and_names_as_paths() -> None:
    asked: dict[str, Any] = {"out": "a", "results": "b", "data": Path("c"), "large": Path("d"), "small": Path("e")}
    request = Request(Path("f.yaml"), **asked)  # type: ignore[arg-type]
    assert (request.out, request.results) == (Path("a"), Path("b"))
    assert (request.task, request.data, request.large, request.small) == ("f.yaml", "c", "d", "e")


@pytest.mark.parametrize("asked", [{"seed": -1}, {"threads": 10**6}, {"warmup": "2"}, {"limit": 2.5}, {"draws": True}])
def test_a_number_that_cannot_be_is_refused_by_name(asked: dict[str, Any]) -> None:
    (name,) = asked
    with pytest.raises(UsageError, match=f"^--{name}: "):
        Request("iwslt17", **asked)
