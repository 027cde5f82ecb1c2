"""The oracle by hand: the small model's token stands unless the large one finds it too unlikely."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.decoding.alone import AloneSettings, small, vanilla
from bild_bench.decoding.oracle import OracleSettings, oracle
from bild_bench.decoding.picking import Greedy
from bild_bench.errors import UsageError
from tests.tables import END, limits, random_table, sessions, written


def test_a_token_is_replaced_where_the_large_model_gives_it_too_little() -> None:
    small_table = written({(): {2: 0.5}, (2,): {3: 0.9}, (2, 4): {END: 0.6}})
    # S's first and last tokens have 0.25 exactly, which is not below 0.25; its second has less.
    large_table = written({(): {5: 0.7, 2: 0.25}, (2,): {4: 0.9, 3: 0.05}, (2, 4): {6: 0.7, END: 0.25}})
    used = sessions(small_table, large_table)
    outcome = oracle(used, OracleSettings(0.25), limits(10), Greedy())
    assert outcome.tokens == (2, 4, END)
    counters = outcome.counters
    assert (counters.generated, counters.drafted, counters.discarded, counters.large_tokens) == (3, 2, 0, 1)
    assert (counters.small_calls, counters.large_calls, counters.cap_handovers, counters.rollbacks) == (3, 3, 3, 0)
    first, second, third = outcome.trace()
    assert (first.author, second.author, third.author) == ("S", "L", "S")
    assert (first.small_max_prob, first.large_nll) == pytest.approx((0.5, -math.log(0.25)))
    assert second.small_max_prob is None
    assert second.large_nll == pytest.approx(-math.log(0.9))
    assert (third.small_max_prob, third.large_nll) == pytest.approx((0.6, -math.log(0.25)))


def test_both_models_read_every_token_of_the_text_and_nothing_else() -> None:
    small_table = written({(): {2: 0.5}, (4,): {END: 0.9}})
    large_table = written({(): {4: 0.9, 2: 0.01}, (4,): {END: 0.9}})
    used = sessions(small_table, large_table)
    assert oracle(used, OracleSettings(0.5), limits(10), Greedy()).tokens == (4, END)
    for session in (used.small, used.large):
        assert session is not None
        assert session.fed == [0, 4]  # type: ignore[attr-defined]
        assert session.passes == [1, 1]  # type: ignore[attr-defined]


SEEDS, LENGTHS = st.integers(0, 10_000), st.integers(1, 12)
ENDS = st.sets(st.integers(1, 5), min_size=1, max_size=2)


@given(SEEDS, SEEDS, LENGTHS, ENDS)
def test_zero_is_the_small_model_and_one_the_large_one(one: int, other: int, length: int, ends: set[int]) -> None:
    tables, where = (random_table(one), random_table(other)), limits(length, *ends)
    floor = small(sessions(small=tables[0]), AloneSettings(), where, Greedy())
    assert oracle(sessions(*tables), OracleSettings(0), where, Greedy()).tokens == floor.tokens
    top = vanilla(sessions(large=tables[1]), AloneSettings(), where, Greedy())
    assert oracle(sessions(*tables), OracleSettings(1), where, Greedy()).tokens == top.tokens


@settings(deadline=None)
@given(SEEDS, SEEDS, st.floats(0, 1), LENGTHS, ENDS)
def test_every_token_is_as_the_definition_says(one: int, other: int, below: float, length: int, ends: set[int]) -> None:
    small_table, large_table = random_table(one), random_table(other)
    outcome = oracle(sessions(small_table, large_table), OracleSettings(below), limits(length, *ends), Greedy())
    prefix: tuple[int, ...] = (0,)
    for step in outcome.trace():
        small_row, large_row = small_table(prefix), large_table(prefix)
        asked = small_row.index(max(small_row))
        replaced = large_row[asked] < below
        assert (step.author, step.kept) == ("L" if replaced else "S", True)
        assert step.token == (large_row.index(max(large_row)) if replaced else asked)
        prefix += (step.token,)
    counters = outcome.counters
    assert counters.generated == counters.drafted + counters.large_tokens == len(outcome.tokens) <= length
    assert counters.small_calls == counters.large_calls == counters.generated
    assert not set(outcome.tokens[:-1]) & ends
    assert outcome.hit_limit == (outcome.tokens[-1] not in ends)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_threshold_that_is_no_probability_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match=r"--replace-below: .*must be a number from 0 to 1"):
        OracleSettings(value)
    assert OracleSettings(0).label() == "below=0"
