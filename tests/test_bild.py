"""BiLD's rules one by one, on hand-worked tables (Kim et al. 2023, Algorithm 1)."""

from __future__ import annotations

import math

import pytest

from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.picking import Greedy
from bild_bench.errors import UsageError
from tests.tables import END, limits, sessions, written

# S writes 2 3 4 END, sure of all but what follows 2 3.
SMALL = {(): {2: 0.9}, (2,): {3: 0.8}, (2, 3): {4: 0.4}, (2, 3, 4): {END: 0.9}, (2, 3, 5): {END: 0.9}}


def decode(small, large, settings, max_tokens=10):
    used = sessions(written(small), written(large))
    return bild(used, settings, limits(max_tokens), Greedy()), used


def test_fallback_drops_the_unsure_token_and_appends_the_large_ones():
    large = {(): {2: 0.9}, (2,): {3: 0.9}, (2, 3): {5: 0.9}}
    outcome, used = decode(SMALL, large, BildSettings(alpha_fb=0.5, alpha_rb=2))
    assert outcome.tokens == (2, 3, 5, END)
    counters = outcome.counters
    assert (counters.fallbacks, counters.rollbacks, counters.large_calls) == (1, 0, 1)
    # The dropped token 4 was never put into the text.
    assert (counters.drafted, counters.discarded, counters.large_tokens, counters.small_calls) == (3, 0, 1, 4)
    assert used.large.passes == [3], "one pass over the start token and both drafts"


def test_a_confidence_equal_to_the_threshold_falls_back():
    large = {(): {6: 0.9}, (6,): {END: 0.9}}
    small = {(): {2: 0.5}, (6,): {END: 0.9}}
    outcome, _ = decode(small, large, BildSettings(alpha_fb=0.5, alpha_rb=2))
    assert outcome.tokens == (6, END)


def test_rollback_cuts_at_the_first_violation_and_one_pass_supplies_the_replacement():
    # -ln 0.01 = 4.6 > 2 at the second draft; the third is not even looked at.
    large = {(): {2: 0.9}, (2,): {6: 0.9, 3: 0.01}, (2, 3): {5: 0.9}}
    small = SMALL | {(2, 6): {END: 0.9}}
    outcome, used = decode(small, large, BildSettings(alpha_fb=0.5, alpha_rb=2))
    assert outcome.tokens == (2, 6, END)
    assert (outcome.counters.rollbacks, outcome.counters.discarded, outcome.counters.large_calls) == (1, 1, 1)
    assert used.large.passes == [3]
    assert used.large.fed == [0, 2]
    assert used.small.fed == [0, 2, 6]


def test_the_rollback_threshold_itself_is_kept():
    large = {(): {2: 0.9}, (2,): {6: 0.7, 3: math.exp(-2)}, (2, 3): {5: 0.9}}
    alpha_rb = -math.log(math.exp(-2))
    outcome, _ = decode(SMALL, large, BildSettings(alpha_fb=0.5, alpha_rb=alpha_rb))
    assert outcome.tokens == (2, 3, 5, END)
    assert outcome.counters.rollbacks == 0


def test_what_the_large_model_chose_or_passed_is_not_tested_again():
    # With alpha_rb = 0 even L's own tokens (p = 0.6) would fail; only S's drafts are judged, and each once.
    large = {(): {2: 0.6}, (2,): {3: 0.6}, (2, 3): {END: 0.6}}
    small = {(): {2: 0.4}, (2,): {4: 0.9}, (2, 4): {5: 0.4}, (2, 3): {5: 0.4}}
    large |= {(2, 4): {5: 0.9}}
    outcome, _ = decode(small, large, BildSettings(alpha_fb=0.5, alpha_rb=0))
    assert outcome.tokens == (2, 3, END)
    assert (outcome.counters.fallbacks, outcome.counters.rollbacks) == (3, 1)


def test_a_rollback_may_end_the_text():
    large = {(): {2: 0.9}, (2,): {END: 0.9, 3: 0.01}, (2, 3): {5: 0.9}}
    outcome, _ = decode(SMALL, large, BildSettings(alpha_fb=0.5, alpha_rb=2))
    assert outcome.tokens == (2, END)
    assert not outcome.hit_limit


def test_an_end_token_of_the_small_model_ends_the_text_untested():
    small = {(): {2: 0.9}, (2,): {END: 0.9}}
    outcome, used = decode(small, {}, BildSettings(alpha_fb=0.5, alpha_rb=0))
    assert outcome.tokens == (2, END)
    assert used.large.passes == []
    assert outcome.counters.large_calls == outcome.counters.tail_checks == 0


@pytest.mark.parametrize(
    ("large", "tokens", "rollbacks"),
    [
        ({(): {2: 0.9}, (2,): {END: 0.9}}, (2, END), 0),
        ({(): {2: 0.9}, (2,): {5: 0.9, END: 0.01}, (2, 5): {END: 0.9}}, (2, 5, END), 1),
    ],
)
def test_verify_tail_lets_the_large_model_look_first(large, tokens, rollbacks):
    small = {(): {2: 0.9}, (2,): {END: 0.9}, (2, 5): {END: 0.9}}
    outcome, used = decode(small, large, BildSettings(alpha_fb=0.5, alpha_rb=2, verify_tail=True))
    assert outcome.tokens == tokens
    assert outcome.counters.rollbacks == rollbacks
    assert outcome.counters.tail_checks == outcome.counters.large_calls == 1 + rollbacks
    # The end token need not be fed: the row before it judges it.
    assert used.large.passes[0] == 2
    assert outcome.counters.large_tokens == rollbacks, "a passed check appends nothing"


def test_nothing_is_drafted_or_counted_beyond_the_limit():
    outcome, used = decode(SMALL, {}, BildSettings(alpha_fb=0.3, alpha_rb=2), max_tokens=2)
    assert outcome.tokens == (2, 3)
    assert outcome.hit_limit
    assert outcome.counters.drafted == len(used.small.passes) == 2


def test_max_draft_calls_the_large_model_without_asking_the_small_one():
    large = {(): {2: 0.9}, (2,): {3: 0.9}, (2, 3): {4: 0.9}}
    outcome, used = decode(SMALL, large, BildSettings(alpha_fb=0.1, alpha_rb=2, max_draft=2))
    assert outcome.tokens == (2, 3, 4, END)
    assert (outcome.counters.cap_handovers, outcome.counters.fallbacks) == (1, 0)
    assert outcome.counters.small_calls == 3
    assert used.large.passes == [3]


def test_the_large_model_may_start():
    large = {(): {6: 0.9}}
    small = {(): {2: 0.9}, (6,): {END: 0.9}}
    outcome, _ = decode(small, large, BildSettings(alpha_fb=0.5, alpha_rb=2, first="large"))
    assert outcome.tokens == (6, END)
    assert (outcome.counters.start_calls, outcome.counters.fallbacks, outcome.counters.large_calls) == (1, 0, 1)


def test_the_trace_tells_who_wrote_what_and_what_was_cut():
    large = {(): {2: 0.9}, (2,): {6: 0.9, 3: 0.01}, (2, 3): {5: 0.9}}
    small = SMALL | {(2, 6): {END: 0.9}}
    outcome, _ = decode(small, large, BildSettings(alpha_fb=0.5, alpha_rb=2))
    told = [(step.position, step.token, step.author, step.kept, step.small_max_prob) for step in outcome.trace()]
    assert told == [(0, 2, "S", True, 0.9), (1, 3, "S", False, 0.8), (1, 6, "L", True, None), (2, END, "S", True, 0.9)]
    nlls = [step.large_nll for step in outcome.trace()]
    assert nlls[:3] == pytest.approx([-math.log(0.9), -math.log(0.01), -math.log(0.9)])
    assert nlls[3] is None, "the large model never saw the last token"


@pytest.mark.parametrize("alpha_fb", [-0.1, 1.1, math.nan, math.inf])
def test_the_fallback_threshold_is_a_probability(alpha_fb):
    with pytest.raises(UsageError, match=r"--alpha-fb.*0 to 1"):
        BildSettings(alpha_fb=alpha_fb)


@pytest.mark.parametrize("alpha_rb", [-0.1, -math.inf, math.nan])
def test_the_rollback_threshold_is_not_negative(alpha_rb):
    with pytest.raises(UsageError, match=r"--alpha-rb.*0 to inf"):
        BildSettings(alpha_rb=alpha_rb)


@pytest.mark.parametrize("max_draft", [0, -1])
def test_the_cap_is_positive(max_draft):
    with pytest.raises(UsageError, match=r"--max-draft.*1 or more"):
        BildSettings(max_draft=max_draft)


def test_zero_thresholds_stay_zero():
    assert (BildSettings(alpha_fb=0, alpha_rb=0).alpha_fb, BildSettings(alpha_fb=0, alpha_rb=0).alpha_rb) == (0, 0)


def test_labels_name_what_differs_from_the_defaults():
    assert BildSettings(0.5, 2).label() == "fb=0.5 rb=2"
    full = BildSettings(0, math.inf, max_draft=10, first="large", verify_tail=True)
    assert full.label() == "fb=0 rb=never cap=10 first=large tail"
