"""BiLD when tokens are drawn: each rule by hand. Both tests look at probabilities before warping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.picking import Sampling
from bild_bench.decoding.records import Decoded
from bild_bench.decoding.sampling import Sampler
from bild_bench.decoding.session import Rows
from tests.tables import END, limits, random_table, sessions, written


@dataclass
class Script:
    """A picker that draws what is written down; it keeps the row that each draw was made from."""

    tokens: list[int]
    rows: list[list[float]] = field(default_factory=list)

    def pick(self, rows: Rows, row: int = -1) -> int:
        self.rows.append(rows.probs()[row].tolist())
        return self.tokens.pop(0)

    def propose(self, row: Rows) -> tuple[int, Any]:
        raise AssertionError("BiLD judges by its own rule")

    def judge(self, drafts: Sequence[int], proposals: Sequence[Any], rows: Rows) -> Any:
        raise AssertionError("BiLD judges by its own rule")


def decode(small: Any, large: Any, how: BildSettings, picker: Any, max_tokens: int = 10) -> tuple[Decoded, Any]:
    used = sessions(written(small), written(large))
    return bild(used, how, limits(max_tokens), picker), used


HOW = BildSettings(alpha_fb=0.5, alpha_rb=2.0)


def test_the_fallback_test_sees_max_p_though_another_token_is_drawn() -> None:
    # p_S(2) = 0.6 passes; 3 with p_S = 0.3, below alpha_fb, is drawn and stays.
    small = {(): {2: 0.6, 3: 0.3}, (3,): {END: 0.9}}
    outcome, used = decode(small, {}, HOW, Script([3, END]))
    assert outcome.tokens == (3, END)
    assert (outcome.counters.fallbacks, outcome.counters.drafted) == (0, 2)
    assert used.large.passes == []
    assert [step.small_max_prob for step in outcome.trace()] == [0.6, 0.9]


def test_an_unsure_small_model_draws_nothing() -> None:
    # max p_S = 0.45 falls back: the one draw of this step is the large model's, from its own row.
    small, large = {(): {2: 0.45, 3: 0.45}, (6,): {END: 0.9}}, {(): {5: 0.7, 6: 0.2}}
    picker = Script([6, END])
    outcome, _ = decode(small, large, HOW, picker)
    assert outcome.tokens == (6, END)
    assert (outcome.counters.fallbacks, outcome.counters.drafted, outcome.counters.large_tokens) == (1, 1, 1)
    assert [row[5] for row in picker.rows] == pytest.approx([0.7, 0.1 / 7])
    # The drawn token is not the large model's best one: its own -ln p is noted.
    assert outcome.trace()[0].large_nll == pytest.approx(-math.log(0.2))


def test_the_rollback_test_sees_the_drawn_token() -> None:
    # L agrees with S's best token 2 and gives the drawn one, 3, only 0.1: -ln 0.1 = 2.3 > 2.
    small = {(): {2: 0.6, 3: 0.3}, (3,): {2: 0.4}, (4,): {END: 0.9}}
    large = {(): {2: 0.8, 3: 0.1, 4: 0.06}, (3,): {5: 0.9}}
    picker = Script([3, 4, END])
    outcome, used = decode(small, large, HOW, picker)
    assert outcome.tokens == (4, END), "the replacement is drawn from the row that found the violation"
    assert (outcome.counters.rollbacks, outcome.counters.discarded, outcome.counters.fallbacks) == (1, 1, 1)
    assert picker.rows[1][2] == 0.8
    assert used.large.passes == [2], "one pass finds the violation and supplies the replacement"
    nlls = [step.large_nll for step in outcome.trace()]
    assert nlls[:2] == pytest.approx([-math.log(0.1), -math.log(0.06)])
    # The replacement's own -ln p = 2.8 is above alpha_rb too: what L drew is not tested again.
    assert [step.kept for step in outcome.trace()] == [False, True, True]


def test_a_passed_draft_stays_and_the_large_model_draws_after_it() -> None:
    small, large = {(): {2: 0.6, 3: 0.3}, (3,): {2: 0.4}}, {(): {2: 0.7, 3: 0.2}, (3,): {5: 0.9, END: 0.05}}
    picker = Script([3, END])
    outcome, _ = decode(small, large, HOW, picker)
    assert outcome.tokens == (3, END)  # -ln 0.2 = 1.6 is within 2
    assert (outcome.counters.rollbacks, outcome.counters.large_tokens) == (0, 1)
    assert picker.rows[1][5] == 0.9


def test_both_thresholds_are_applied_before_warping() -> None:
    # At temperature 0.1 S's 0.4 would sharpen to almost 1 and L's 0.15 for token 2 would fade below e**-20.
    how, cold = BildSettings(alpha_fb=0.5, alpha_rb=2.0), Sampling(temperature=0.1)
    small = {(): {2: 0.7}, (2,): {2: 0.4}}
    large = {(): {2: 0.15, 3: 0.6}, (2,): {END: 0.9}}
    outcome, _ = decode(small, large, how, Sampler(cold, 0))
    assert outcome.tokens == (2, END)
    assert (outcome.counters.fallbacks, outcome.counters.rollbacks) == (1, 0)
    trace = outcome.trace()
    assert trace[0].small_max_prob == 0.7
    assert trace[0].large_nll == pytest.approx(-math.log(0.15))


def test_the_replacement_has_the_large_models_warped_distribution() -> None:
    # Token 7 would be drafted by S for certain; L rolls it back and draws 3 to 1 between 4 and 5, which reach 0.7.
    small = {(): {7: 0.999}, (7,): {2: 0.4}, (4,): {END: 0.999}, (5,): {END: 0.999}}
    large = {(): {4: 0.6, 5: 0.2, 7: 0.01}, (7,): {2: 0.9}}
    picker = Sampler(Sampling(top_p=0.7), 5)
    drawn = [decode(small, large, HOW, picker)[0] for _ in range(2_000)]
    assert {outcome.counters.rollbacks for outcome in drawn} == {1}
    first = [outcome.tokens[0] for outcome in drawn]
    assert set(first) == {4, 5}
    # 0.75 within four standard deviations, sqrt(0.75 * 0.25 / 2000) = 0.0097 each.
    assert first.count(4) / 2_000 == pytest.approx(0.75, abs=0.039)


def test_drafts_have_the_small_models_warped_distribution() -> None:
    small = {(): {2: 0.6, 3: 0.2, 4: 0.15}, (2,): {END: 0.999}, (3,): {END: 0.999}}
    picker = Sampler(Sampling(top_p=0.7), 6)
    first = [decode(small, {}, HOW, picker, max_tokens=1)[0].tokens[0] for _ in range(2_000)]
    assert set(first) == {2, 3}
    assert first.count(2) / 2_000 == pytest.approx(0.75, abs=0.039)


def test_the_same_seed_draws_the_same_text_and_others_draw_others() -> None:
    def text(seed: int) -> tuple[int, ...]:
        used = sessions(random_table(1, sharpness=0.5), random_table(2, sharpness=0.5))
        return bild(used, BildSettings(0.3, math.inf), limits(8), Sampler(Sampling(), seed)).tokens

    texts = [text(seed) for seed in range(20)]
    assert texts == [text(seed) for seed in range(20)]
    assert len(set(texts)) > 10
