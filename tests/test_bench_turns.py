"""The bench's turns and its machine's limit; by hand, and no time is tested."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from bench import ceiling, interleave
from bench.interleave import Text, Turn
from bild_bench.measure.operations import Shape, Stack, Work
from tests.made_benches import clock

T5_LARGE = Shape(1024, Stack(24, 1024, 4096, False), Stack(24, 1024, 4096, False), 32_128, 4, 4)


def test_every_text_meets_every_contestant_as_often_as_asked_and_the_warm_up_is_dropped() -> None:
    seen: list[tuple[str, int]] = []

    def contestant(name: str) -> Callable[[Text], Turn]:
        def turn(text: Text) -> Turn:
            seen.append((name, text.ids[0]))
            return Turn(float(len(seen)), (text.ids[0],))

        return turn

    texts = [Text((number,)) for number in range(8)]
    found = interleave.interleave(texts, {n: contestant(n) for n in "abc"}, seed=0, repeats=3, pause=0.0)
    assert seen[:3] == [("a", 0), ("b", 0), ("c", 0)], "warm-up"
    timed = seen[3:]
    assert len(timed) == 8 * 3 * 3
    rounds = [timed[start : start + 3] for start in range(0, len(timed), 3)]
    assert all(sorted(name for name, _ in taken) == ["a", "b", "c"] for taken in rounds)
    assert [taken[0][1] for taken in rounds] == [number for number in range(8) for _ in range(3)]
    assert len({tuple(name for name, _ in taken) for taken in rounds}) > 3, "orders vary"
    assert [turn.tokens for turn in found["b"]] == [(number,) for number in range(8)]


def test_a_turn_is_the_median_of_its_repeats() -> None:
    seconds = iter([9.0, 5.0, 1.0, 2.0])  # the first is the warm-up
    found = interleave.interleave([Text((1,))], {"a": lambda text: Turn(next(seconds))}, seed=0, repeats=3, pause=0.0)
    assert found == {"a": [Turn(2.0)]}


def test_a_warm_turn_comes_after_one_that_is_dropped() -> None:
    seconds = iter([9.0, 8.0, 1.0, 7.0, 3.0])  # the first is the warm-up
    contestants = {"a": lambda text: Turn(next(seconds))}
    found = interleave.interleave([Text((1,))], contestants, seed=0, repeats=2, pause=0.0, warm=True)
    assert found == {"a": [Turn(2.0)]}


def test_the_cost_of_the_first_token_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def generate(tokens: int) -> list[int]:
        asked.append(tokens)
        return [7] * tokens

    clock(monkeypatch, 10.0, 11.0, 20.0, 23.5)
    assert interleave.marginal(generate, 4) == Turn(2.5, (7, 7, 7, 7))
    assert asked == [1, 4]


def test_noise_makes_no_negative_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, 0.0, 2.0, 2.0, 3.0)
    assert interleave.marginal(lambda tokens: [1], 4).seconds == 0.0


def test_a_text_is_prepared_once_until_the_next_one_comes() -> None:
    count = itertools.count()
    prepared = interleave.once_a_text(lambda text: next(count))
    first, second = Text((1,)), Text((2,))
    assert [prepared(text) for text in (first, first, second, second, first)] == [0, 0, 1, 1, 2]


# The limit


def test_the_weights_of_a_t5_large_step_are_those_of_its_matrices() -> None:
    # 24 layers of 6 attention matrices and 2 of the feed-forward layer, the output projection, one row of embedding.
    elements = 24 * (6 * 1024**2 + 2 * 1024 * 4096) + 1024 * 32_128 + 1024
    work = ceiling.step_of(T5_LARGE, 1)
    assert work.weight_bytes == 4 * elements == 1_540_886_528
    # Two operations a weight, and its own key as the only one to look at.
    assert work.flops == 2 * (elements - 1024) + 24 * 4 * 1024


def test_the_slower_of_memory_and_arithmetic_is_the_limit() -> None:
    work = Work(flops=200, weight_bytes=100)
    assert ceiling.limit_seconds(work, seconds_a_byte=0.5, flops_a_second=10.0) == 50.0
    assert ceiling.limit_seconds(work, seconds_a_byte=0.1, flops_a_second=10.0) == 20.0


def test_the_limit_is_measured_on_an_array_of_any_size() -> None:
    for size in (1, 1 << 16):
        assert ceiling.memory_reader(size)() > 0
