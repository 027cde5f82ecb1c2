"""Threads are chosen by timing the models, with a preference for few, and an experiment keeps those it began with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch

from bild_bench import setup, thread_choice
from bild_bench.decoding.methods import METHODS
from bild_bench.decoding.records import Limits
from bild_bench.thread_choice import candidates, choose_threads, pick, set_fastest
from tests.command_line import call

LIMITS = Limits(8, 0, frozenset({1}))


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("cores", "counts"),
    [(None, [1]), (1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12])],
)
def test_candidates(cores: int | None, counts: list[int]) -> None:
    assert candidates(cores) == counts


@pytest.mark.parametrize(
    ("milliseconds", "best"),
    [
        ({1: 10.0, 2: 9.1}, 1),
        ({1: 10.0, 2: 9.0}, 2),
        ({1: 10.0, 2: 260.0}, 1),
        ({1: 10.0, 2: 6.0, 4: 5.5}, 2),
        ({1: 10.0, 2: 12.0, 4: 5.0}, 4),
        ({4: 3.0, 1: 10.0, 2: 6.0}, 4),
    ],
)
def test_more_threads_must_pay(milliseconds: dict[int, float], best: int) -> None:
    assert pick(milliseconds) == best


class FakePair:
    """Each step advances a clock by what it costs at the number of threads that is set."""

    device = "cpu"

    def __init__(self, costs: dict[int, float]) -> None:
        self.now, self.costs, self.steps = 0.0, costs, 0

    def tokenise(self, text: str, limit: int) -> str:
        return text

    def encode(self, key: str, source: str) -> str:
        return f"{key}: {source}"

    def session(self, key: str, encoded: str, limits: Limits) -> Any:
        assert encoded == f"{key}: Satz"
        return SimpleNamespace(extend=self.extend)

    def extend(self, tokens: list[int]) -> Any:
        self.steps += 1
        self.now += self.costs[torch.get_num_threads()]
        return SimpleNamespace(argmax=list)


def choose(pair: Any, counts: tuple[int, ...] = (1, 2)) -> dict[int, float] | None:
    return choose_threads(pair, ["large", "small"], "Satz", LIMITS, counts=counts, clock=lambda: pair.now)


@pytest.mark.parametrize(("costs", "best"), [({1: 0.001, 2: 0.0006}, 2), ({1: 0.001, 2: 0.026}, 1)])
def test_the_fastest_count_is_set_and_its_figures_are_kept(costs: dict[int, float], best: int) -> None:
    pair = FakePair(costs)
    found = choose(pair)
    # Two models, four single tokens and a block each.
    assert found == {count: pytest.approx(10 * 1000 * cost) for count, cost in costs.items()}
    assert torch.get_num_threads() == best


class Waiting(FakePair):
    """On two threads each step is fast, but every hundredth has to wait 0.1 s for a busy core."""

    def extend(self, tokens: list[int]) -> Any:
        if torch.get_num_threads() == 2 and self.steps % 100 == 99:
            self.now += 0.1
        return super().extend(tokens)


def test_a_thread_that_is_kept_waiting_now_and_then_is_seen() -> None:
    pair = Waiting({1: 0.0002, 2: 0.0001})
    found = choose(pair)
    # 20 ms at 0.1 ms per step are two hundred steps: each round meets a wait, which its mean shows.
    assert found is not None
    assert found[2] > found[1] == pytest.approx(2.0)
    assert torch.get_num_threads() == 1


def test_slow_models_are_timed_once() -> None:
    pair = FakePair({1: 1.0, 2: 0.5})
    choose(pair)
    # A warm-up and one round, of both counts.
    assert pair.steps == 2 * 2 * 10


def test_on_one_core_or_a_gpu_nothing_is_chosen() -> None:
    before = torch.get_num_threads()
    assert choose(FakePair({}), (1,)) is None
    gpu: Any = SimpleNamespace(device="cuda")
    assert choose(gpu) is None
    assert torch.get_num_threads() == before


def test_a_container_that_grants_two_cores_of_sixteen_gets_two_threads() -> None:
    assert [candidates(16, quota) for quota in (2.5, 0.5, None)] == [[1, 2], [1], [1, 2, 4, 8, 16]]


def test_a_text_that_cannot_be_decoded_leaves_the_threads_alone() -> None:
    pair: Any = SimpleNamespace(
        device="cpu", models={"large": None}, tokenise=lambda *_: "Satz", encode=lambda *_: None
    )

    def broken(*_: Any) -> Any:
        raise IndexError("no such id")

    pair.session = broken
    torch.set_num_threads(3)
    assert set_fastest(pair, "Satz", LIMITS) is None
    assert torch.get_num_threads() == 3


def timed(monkeypatch: pytest.MonkeyPatch, milliseconds: dict[int, float]) -> None:
    def chosen(*_: Any, **__: Any) -> dict[int, float]:
        torch.set_num_threads(pick(milliseconds))
        return milliseconds

    monkeypatch.setattr(thread_choice, "choose_threads", chosen)


def run(out: Path, *more: str) -> Any:
    return call("run", "--task", "iwslt17", "--limit", "2", "--warmup", "0", "--out", out, *more)


def test_the_choice_is_told_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed(monkeypatch, {1: 2.5, 2: 26.0})
    ended = run(tmp_path / "out")
    assert "threads: 1, the fastest of 1, 2\n" in ended.err
    environment = json.loads(pd.read_parquet(tmp_path / "out/run.parquet").environment[0])
    assert (environment["threads"], environment["threads_timed"]) == (1, {"1": 2.5, "2": 26.0})


def test_a_number_that_is_given_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "_with_threads", lambda _: pytest.fail("threads were timed"))
    assert "threads:" not in run(tmp_path / "out", "--threads", "1").err


def test_an_experiment_goes_on_with_the_threads_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed(monkeypatch, {1: 1.0, 2: 2.0})
    run(tmp_path / "out")
    timed(monkeypatch, {1: 2.0, 2: 1.0})
    ended = run(tmp_path / "out")
    assert ended.code == 0
    assert "is complete already: nothing is decoded" in ended.err
    assert "threads: 1, " in ended.err


@pytest.mark.parametrize("text", ["many", "1.5", ""])
def test_another_word_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    ended = run(tmp_path / "out", f"--threads={text}")
    assert ended.code == 2
    assert ended.err == f"error: --threads: {text!r}: must be auto or a whole number; leave it out for auto\n"


def test_an_extension_takes_the_threads_of_the_experiment_it_extends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "a", "--threads", "2")
    timed(monkeypatch, {1: 1.0, 2: 2.0})
    more = ("sweep", "--task", "iwslt17", "--limit", "2", "--warmup", "0", "--alpha-fb", "0.5,0.6")
    ended = call(*more, "--out", tmp_path / "b", "--extend", tmp_path / "a")
    assert "4 rows of 2 texts are taken over" in ended.err
    environment = json.loads(pd.read_parquet(tmp_path / "b/run.parquet").environment[0])
    assert (environment["threads"], environment["threads_timed"]) == (2, None)


@pytest.mark.parametrize(("asked", "threads"), [("auto", 1), ("2", 2)])
def test_one_text_is_decoded_on_the_threads_that_were_asked_for(
    asked: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed(monkeypatch, {1: 1.0, 2: 2.0})
    torch.set_num_threads(2)
    seen = []
    decode = METHODS["vanilla"].decode

    def decoding(*arguments: Any) -> Any:
        seen.append(torch.get_num_threads())
        return decode(*arguments)

    monkeypatch.setitem(METHODS, "vanilla", replace(METHODS["vanilla"], decode=decoding))
    assert call("generate", "Ein Haus.", "--mode", "vanilla", "--threads", asked).code == 0
    assert (seen, torch.get_num_threads()) == ([threads], 2)


def test_generate_refuses_other_words_in_one_line() -> None:
    ended = call("generate", "Ein Haus.", "--threads", "many")
    assert ended.code == 2
    assert ended.err == "error: --threads: 'many': must be auto or a whole number; leave it out for auto\n"
