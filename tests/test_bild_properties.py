"""BiLD's invariants over random models, against a plain transcription of the definition that caches nothing."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.decoding.alone import AloneSettings, small, vanilla
from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Counters
from tests.tables import START, Table, limits, random_table, sessions

SEEDS = st.integers(0, 10_000)
FALLBACK = st.floats(0, 1)
ROLLBACK = st.one_of(st.floats(0, 6), st.just(math.inf))
VARIANTS = st.builds(
    BildSettings, FALLBACK, ROLLBACK, st.none() | st.integers(1, 4), st.sampled_from(["small", "large"]), st.booleans()
)
ENDS = st.sets(st.integers(1, 5), min_size=1, max_size=2)
LENGTHS = st.integers(1, 12)


def plain_bild(small_table: Table, large_table: Table, how: BildSettings, length: int, ends: set[int]) -> tuple:
    """The definition over whole prefixes: y, and for each token whether L may still test it."""
    y: list[int] = []
    tested: list[bool] = []

    def done() -> bool:
        return len(y) >= length or (len(y) > 0 and y[-1] in ends)

    def best(table: Table, tokens: list[int]) -> int:
        row = table((START, *tokens))
        return row.index(max(row))

    def large_turn(append: bool) -> None:
        for m in range(len(y)):
            if not tested[m] and -math.log(large_table((START, *y[:m]))[y[m]]) > how.alpha_rb:
                del y[m:], tested[m:]
                break
        else:
            if not append:
                return
        tested[:] = [True] * len(y)
        y.append(best(large_table, y))
        tested.append(True)

    if how.first == "large":
        large_turn(append=True)
    while not done():
        unsure = how.max_draft is not None and tested[-how.max_draft :].count(False) == how.max_draft
        if not unsure:
            unsure = max(small_table((START, *y))) <= how.alpha_fb
        if unsure:
            large_turn(append=True)
            continue
        y.append(best(small_table, y))
        tested.append(False)
        if done() and how.verify_tail:
            large_turn(append=False)
    return tuple(y)


@settings(max_examples=400, deadline=None)
@given(SEEDS, SEEDS, VARIANTS, LENGTHS, ENDS)
def test_bild_is_the_definition(small_seed, large_seed, how, length, ends):
    tables = random_table(small_seed), random_table(large_seed)
    outcome = bild(sessions(*tables), how, limits(length, *ends), Greedy())
    assert outcome.tokens == plain_bild(*tables, how, length, ends)


@settings(max_examples=200, deadline=None)
@given(SEEDS, SEEDS, VARIANTS, LENGTHS, ENDS)
def test_counters_add_up_and_limits_are_kept(small_seed, large_seed, how, length, ends):
    used = sessions(random_table(small_seed), random_table(large_seed))
    outcome = bild(used, how, limits(length, *ends), Greedy())
    counters = outcome.counters
    assert counters.generated == len(outcome.tokens) <= length
    assert counters.generated == counters.drafted - counters.discarded + counters.large_tokens
    reasons = counters.fallbacks + counters.cap_handovers + counters.start_calls + counters.tail_checks
    assert counters.large_calls == reasons == len(used.large.passes), "one pass a hand-over"
    assert counters.small_calls == counters.drafted + counters.fallbacks == len(used.small.passes)
    assert not set(outcome.tokens[:-1]) & ends
    assert outcome.hit_limit == (outcome.tokens[-1] not in ends)
    kept = [step for step in outcome.trace() if step.kept]
    assert tuple(step.token for step in kept) == outcome.tokens
    assert [step.position for step in kept] == list(range(len(kept)))
    assert len(outcome.trace()) - len(kept) == counters.discarded


@given(SEEDS, SEEDS, ROLLBACK, LENGTHS, ENDS)
def test_alpha_fb_one_is_vanilla(small_seed, large_seed, alpha_rb, length, ends):
    tables = random_table(small_seed), random_table(large_seed)
    alone = vanilla(sessions(large=tables[1]), AloneSettings(), limits(length, *ends), Greedy())
    assert bild(sessions(*tables), BildSettings(1.0, alpha_rb), limits(length, *ends), Greedy()).tokens == alone.tokens


@given(SEEDS, SEEDS, ROLLBACK, LENGTHS, ENDS)
def test_alpha_fb_zero_is_the_small_model(small_seed, large_seed, alpha_rb, length, ends):
    tables = random_table(small_seed), random_table(large_seed)
    alone = small(sessions(small=tables[0]), AloneSettings(), limits(length, *ends), Greedy())
    outcome = bild(sessions(*tables), BildSettings(0.0, alpha_rb), limits(length, *ends), Greedy())
    assert outcome.tokens == alone.tokens
    assert outcome.counters.large_calls == 0


@given(SEEDS, SEEDS, FALLBACK, LENGTHS, ENDS)
def test_an_infinite_threshold_never_rolls_back(small_seed, large_seed, alpha_fb, length, ends):
    used = sessions(random_table(small_seed, sharpness=5), random_table(large_seed, sharpness=20))
    assert bild(used, BildSettings(alpha_fb, math.inf), limits(length, *ends), Greedy()).counters.rollbacks == 0


@given(SEEDS, LENGTHS, ENDS)
def test_a_model_alone_counts_every_token_once(seed, length, ends):
    by_large = vanilla(sessions(large=random_table(seed)), AloneSettings(), limits(length, *ends), Greedy())
    by_small = small(sessions(small=random_table(seed)), AloneSettings(), limits(length, *ends), Greedy())
    assert by_large.tokens == by_small.tokens
    count = len(by_large.tokens)
    assert by_large.counters == Counters(count, 0, count, 0, 0, count, 0, 0, 0, 0, 0)
    assert by_small.counters == Counters(count, count, 0, count, 0, 0, 0, 0, 0, 0, 0)
