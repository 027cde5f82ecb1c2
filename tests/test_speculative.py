"""Speculative decoding: vanilla's tokens under greedy search, and every rule on hand-worked tables."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.api import load_pair
from bild_bench.decoding.alone import AloneSettings, vanilla
from bild_bench.decoding.methods import METHODS
from bild_bench.decoding.picking import Greedy, Sampling
from bild_bench.decoding.records import Decoded
from bild_bench.decoding.sampling import Sampler
from bild_bench.decoding.speculative import SpeculativeSettings, speculative
from bild_bench.errors import UsageError
from bild_bench.models.opening import open_sessions
from bild_bench.models.pair import Pair
from tests.checkpoints import save_t5
from tests.tables import END, limits, random_table, sessions, written

SEEDS = st.integers(0, 10_000)
WINDOWS = st.builds(SpeculativeSettings, st.integers(1, 8), st.booleans())
LENGTHS = st.integers(1, 12)
ENDS = st.sets(st.integers(1, 5), min_size=1, max_size=2)
# Flat distributions, in which the two models' choices are near ties, to sharp ones.
SHARPNESS = st.sampled_from([0.5, 2.0, 20.0])


@settings(max_examples=400, deadline=None)
@given(SEEDS, SEEDS, SHARPNESS, WINDOWS, LENGTHS, ENDS)
def test_greedy_output_is_vanillas(
    small_seed: int, large_seed: int, sharpness: float, how: SpeculativeSettings, length: int, ends: set[int]
) -> None:
    tables = random_table(small_seed, sharpness=sharpness), random_table(large_seed, sharpness=sharpness)
    alone = vanilla(sessions(large=tables[1]), AloneSettings(), limits(length, *ends), Greedy())
    outcome = speculative(sessions(*tables), how, limits(length, *ends), Greedy())
    assert (outcome.tokens, outcome.hit_limit) == (alone.tokens, alone.hit_limit)


@settings(max_examples=300, deadline=None)
@given(SEEDS, SEEDS | st.none(), WINDOWS, LENGTHS, ENDS, st.booleans())
def test_counters_and_trace_add_up(
    small_seed: int, large_seed: int | None, how: SpeculativeSettings, length: int, ends: set[int], drawn: bool
) -> None:
    used = sessions(random_table(small_seed), random_table(small_seed if large_seed is None else large_seed))
    picker = Sampler(Sampling(0.8, None, 0.9), small_seed) if drawn else Greedy()
    outcome = speculative(used, how, limits(length, *ends), picker)
    counters = outcome.counters
    assert counters.generated == len(outcome.tokens) <= length
    assert counters.generated == counters.drafted - counters.discarded + counters.large_tokens
    assert counters.large_calls == counters.cap_handovers + counters.tail_checks == len(used.large.passes)
    assert counters.small_calls == counters.drafted == len(used.small.passes), "one draft a pass of the small model"
    assert (counters.fallbacks, counters.start_calls) == (0, 0)
    # Every pass of L ends with a token of L's own, but for a kept window that ends the text.
    assert counters.large_calls - counters.large_tokens in (0, 1)
    assert counters.rollbacks <= min(counters.discarded, counters.large_calls)
    assert outcome.hit_limit == (outcome.tokens[-1] not in ends)
    assert not set(outcome.tokens[:-1]) & ends
    if large_seed is None and not drawn:
        assert (counters.rollbacks, counters.discarded) == (0, 0)
    trace = outcome.trace()
    kept = [step for step in trace if step.kept]
    assert tuple(step.token for step in kept) == outcome.tokens
    assert [step.position for step in kept] == list(range(len(kept)))
    assert len(trace) - len(kept) == counters.discarded
    assert sum(step.author == "S" for step in trace) == counters.drafted
    assert all(step.large_nll is not None for step in trace if step.author == "S"), "every draft was scored"
    for step in trace:
        if step.author == "S" and step.kept:
            before = (0, *outcome.tokens[: step.position])
            assert step.large_nll == pytest.approx(-math.log(used.large.table(before)[step.token]))


def decode(small: Any, large: Any, how: SpeculativeSettings, max_tokens: int = 10) -> tuple[Decoded, Any]:
    used = sessions(written(small), written(large))
    return speculative(used, how, limits(max_tokens), Greedy()), used


# S writes 2 3 4 END; what it says after 5 and 6 is asked only after a rejection.
SMALL = {(): {2: 0.9}, (2,): {3: 0.9}, (2, 3): {4: 0.9}, (2, 3, 4): {END: 0.9}}


def test_a_rejection_keeps_what_came_before_and_takes_the_large_models_token() -> None:
    large = {(): {2: 0.9}, (2,): {5: 0.9}, (2, 3): {4: 0.9}, (2, 3, 4): {6: 0.9}, (2, 5): {END: 0.9}}
    small = SMALL | {(2, 5): {END: 0.8}}
    outcome, used = decode(small, large, SpeculativeSettings(3))
    assert outcome.tokens == (2, 5, END)
    counters = outcome.counters
    assert (counters.drafted, counters.discarded, counters.large_tokens) == (4, 2, 1)
    assert (counters.rollbacks, counters.cap_handovers, counters.tail_checks) == (1, 1, 1)
    # The start token and three drafts in one pass; then 5 alone, whose row judges the end token.
    assert used.large.passes == [4, 1]
    assert used.small.passes == [1, 1, 1, 1]


def test_a_kept_window_is_followed_by_a_token_of_the_large_model() -> None:
    large = {(): {2: 0.9}, (2,): {3: 0.9}, (2, 3): {7: 0.9}, (2, 3, 7): {END: 0.9}}
    small = SMALL | {(2, 3, 7): {END: 0.9}}
    outcome, used = decode(small, large, SpeculativeSettings(2))
    assert outcome.tokens == (2, 3, 7, END)
    counters = outcome.counters
    assert (counters.rollbacks, counters.cap_handovers, counters.tail_checks, counters.large_tokens) == (0, 1, 1, 1)
    # S is fed its own last draft and L's token together.
    assert used.small.passes == [1, 1, 2]
    assert used.large.passes == [3, 1]


def test_an_end_token_of_the_small_model_is_tested_and_may_be_replaced() -> None:
    large = {(): {2: 0.9}, (2,): {4: 0.9}, (2, 4): {END: 0.9}}
    small = {(): {2: 0.9}, (2,): {END: 0.9}, (2, 4): {END: 0.9}}
    outcome, used = decode(small, large, SpeculativeSettings(5))
    assert outcome.tokens == (2, 4, END)
    assert not outcome.hit_limit
    assert (outcome.counters.tail_checks, outcome.counters.rollbacks, outcome.counters.discarded) == (2, 1, 1)
    assert used.large.passes == [2, 1], "an end token need not be fed"


def test_the_limit_cuts_a_window_short() -> None:
    large = {(): {2: 0.9}, (2,): {3: 0.9}}
    outcome, used = decode(SMALL, large, SpeculativeSettings(5), max_tokens=2)
    assert (outcome.tokens, outcome.hit_limit) == ((2, 3), True)
    assert (outcome.counters.drafted, outcome.counters.tail_checks, outcome.counters.large_tokens) == (2, 1, 0)
    assert used.large.passes == [2]


def windows(used: Any) -> list[int]:
    """How many drafts L judged each time: a pass also feeds the last token before them, and not a last one."""
    return [size - 1 for size in used.large.passes]


def test_the_adaptive_window_widens_by_two_and_narrows_by_one() -> None:
    # S writes 2 always; L agrees but for tokens 8 and 9 (from 0), where it writes 3.
    def small(prefix: tuple[int, ...]) -> list[float]:
        return [0.0125, 0.0125, 0.9, 0.0125, 0.0125, 0.0125, 0.0125, 0.025]

    def large(prefix: tuple[int, ...]) -> list[float]:
        return [0.05, 0.05, 0.1, 0.6, 0.05, 0.05, 0.05, 0.05] if len(prefix) in (9, 10) else small(prefix)

    used = sessions(small, large)
    speculative(used, SpeculativeSettings(1, adaptive=True), limits(20), Greedy())
    # 1 kept (2 tokens), 3 kept (6), 5: the third of them is token 8, rejected (9), 4: the first is rejected (10),
    # 3 kept (14), 5 kept (20). The last window ends with L's token at the limit.
    assert windows(used) == [1, 3, 5, 4, 3, 5]
    used = sessions(small, large)
    speculative(used, SpeculativeSettings(3), limits(20), Greedy())
    # 4 tokens, 8, 9, 10, 14, 18; two are left, the last of which is not fed.
    assert windows(used) == [3, 3, 3, 3, 3, 3, 1]


def test_the_adaptive_window_never_closes() -> None:
    def small(prefix: tuple[int, ...]) -> list[float]:
        return [0.0, 0.0, 1.0, 0.0]

    def large(prefix: tuple[int, ...]) -> list[float]:
        return [0.1, 0.1, 0.1, 0.7]

    used = sessions(small, large)
    outcome = speculative(used, SpeculativeSettings(3, adaptive=True), limits(7), Greedy())
    assert outcome.tokens == (3,) * 7
    # 3, 2, 1, 1, … drafts; the last one is not fed where it is the text's last.
    assert used.small.passes == [1] * (3 + 2 + 1 + 1 + 1 + 1 + 1)


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("pair")
    save_t5(folder / "large", seed=1)
    save_t5(folder / "small", seed=2, d_model=16)
    return load_pair(large=str(folder / "large"), small=str(folder / "small"), prefix="", dtype="float64")


@pytest.fixture(scope="module")
def trained_pair() -> Pair:
    return load_pair(dtype="float64")


def outputs(pair: Pair, text: str, how: SpeculativeSettings) -> tuple[Decoded, Decoded]:
    """By vanilla and by speculative decoding."""
    source, where = pair.tokenise(text, 64), pair.limits(24)
    encoded = {role: pair.encode(role, source) for role in ("large", "small")}
    points = (METHODS["vanilla"], AloneSettings()), (METHODS["speculative"], how)
    first, second = (
        method.decode(open_sessions(pair, method, given, source, encoded, where), given, where, Greedy())
        for method, given in points
    )
    return first, second


@pytest.mark.parametrize("how", [SpeculativeSettings(1), SpeculativeSettings(4), SpeculativeSettings(2, adaptive=True)])
def test_real_models_agree_token_for_token(how: SpeculativeSettings, random_pair: Pair, trained_pair: Pair) -> None:
    for text in ("the dog sees a cat", "a man near the house reads.", "tree"):
        alone, outcome = outputs(random_pair, text, how)
        assert outcome.tokens == alone.tokens
    rejected = 0
    for text in (
        "Zwei Hunde tragen einen roten Schuh über die Wiese.",
        "Ein Mann liest.",
        "Kinder spielen vor dem alten Haus.",
    ):
        alone, outcome = outputs(trained_pair, text, how)
        assert outcome.tokens == alone.tokens
        rejected += outcome.counters.rollbacks or 0
    assert rejected, "both ways of the rule were taken"


@pytest.mark.parametrize("gamma", [0, -1])
def test_a_window_is_one_at_least(gamma: int) -> None:
    with pytest.raises(UsageError, match=r"--gamma.*1 or more"):
        SpeculativeSettings(gamma)


def test_labels_name_the_window() -> None:
    assert SpeculativeSettings().label() == "gamma=5"
    assert SpeculativeSettings(2, adaptive=True).label() == "gamma=2 adaptive"
