"""Predicted seconds of calls, by hand: every cost below was put there."""

from __future__ import annotations

import gc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bild_bench.decoding.records import Limits
from bild_bench.measure import call_bench
from bild_bench.measure.call_bench import (
    ALONE,
    CONTEXTS,
    DRAFTS,
    OPENING,
    OWN,
    ROWS,
    TURN,
    TURNS,
    CallBench,
    Kind,
    costs_of,
)
from bild_bench.measure.call_costs import CallCosts, EncoderCosts, fit_encoder, fit_loop, predict_decoding
from bild_bench.measure.call_record import Recorded
from bild_bench.measure.operations import DecoderCall
from bild_bench.profiling import rounds_before

# Source of 10 tokens; behind 4 and 64 cached ones: 60 tokens more cost 6 s with one row, 12 s with four. A call whose
# probabilities are read takes 5 s more.
CHOSEN = {4: {1: 10.0, 4: 16.0}, 64: {1: 16.0, 4: 28.0}}
SCORED = {context: {rows: seconds + 5 for rows, seconds in table.items()} for context, table in CHOSEN.items()}
LARGE = CallCosts(10, CHOSEN, SCORED)
SMALL = CallCosts(10, {4: {1: 1.0}, 64: {1: 1.0}}, {4: {1: 1.5}, 64: {1: 1.5}})


def _call(role: str = "large", rows: int = 1, scored: bool = False) -> Recorded:
    return Recorded(role, rows, (DecoderCall(rows, 4, 10, rows),), scored)


@pytest.mark.parametrize(
    ("rows", "cached", "source", "seconds"),
    [
        (1, 4, 10, 10.0),
        (4, 4, 10, 16.0),
        (2, 4, 10, 12.0),
        (6, 4, 10, 20.0),  # beyond the calibrated rows as between the last two
        (1, 34, 10, 13.0),
        (1, 94, 10, 19.0),
        (1, 0, 10, 9.6),
        (4, 34, 10, 22.0),
        (1, 4, 40, 13.0),  # thirty source tokens more cost what thirty cached ones do
    ],
)
def test_a_call_is_linear_in_rows_and_in_keys(rows: int, cached: int, source: int, seconds: float) -> None:
    assert LARGE.seconds(rows, cached, source, scored=False) == pytest.approx(seconds)
    assert LARGE.seconds(rows, cached, source, scored=True) == pytest.approx(seconds + 5)


def test_longer_contexts_that_measured_cheaper_are_taken_to_cost_the_same() -> None:
    noisy = CallCosts(10, {4: {1: 10.0}, 64: {1: 7.0}}, SCORED)

    assert noisy.seconds(1, 1000, 10, scored=False) == 10.0


def test_costs_never_fall_below_zero() -> None:
    assert CallCosts(100, {4: {1: 1.0}, 64: {1: 61.0}}, SCORED).seconds(1, 0, 2, scored=False) == 0.0


def test_what_decoding_adds_to_a_call_is_the_time_beyond_the_calls_over_their_number() -> None:
    # Two texts of three and one call of 10 s each, 44 s in all: 4 s beyond, 1 s a call.
    fitted = fit_loop(LARGE, "large", [([_call()] * 3, 33.5), ([_call()], 10.5)])

    assert fitted == replace(LARGE, loop=pytest.approx(1.0))
    # Each text's session takes 2 s to open: the loop has nothing to do with them.
    opened = replace(LARGE, opening=2.0)
    assert fit_loop(opened, "large", [([_call()] * 3, 35.5), ([_call()], 12.5)]).loop == pytest.approx(1.0)
    assert fit_loop(LARGE, "large", [([_call()] * 2, 18.0)]).loop == pytest.approx(-1.0)
    assert fit_loop(LARGE, "large", []).loop == 0.0


def test_a_text_in_turns_is_the_sum_of_its_openings_calls_and_turns() -> None:
    costs = {
        "large": replace(LARGE, opening=3.0, alone=[99.0], turns=[20.0, 7.0], loop=0.5),
        "small": replace(SMALL, opening=2.0, turns=[4.0, 0.125], loop=0.25),
    }
    calls = [_call("small"), _call("small", scored=True), _call("large", 4, scored=True), _call("small")]
    calls += [_call("large", 2, scored=True), _call("large"), _call("small"), _call("large")]

    # Opening 5; S 1.25 and 4 for its first turn, then 1.75; L 16 + 5, 0.5 and 20; S 1.25 and 0.125; L 12 + 5, 0.5 and
    # 7, and 10.5 in the same turn; S and L as in their second turns.
    expected = 5 + 5.25 + 1.75 + 41.5 + 1.375 + 24.5 + 10.5 + 1.375 + 17.5
    assert predict_decoding(costs, calls) == pytest.approx(expected)


def test_a_model_alone_takes_more_until_its_weights_are_back() -> None:
    costs = {"large": replace(LARGE, opening=3.0, alone=[20.0, 4.0, 1.0], turns=[99.0], loop=0.5)}

    assert predict_decoding(costs, [_call()] * 5) == pytest.approx(3 + 5 * 10.5 + 20 + 4 + 3 * 1)


def test_what_was_timed_becomes_a_models_costs() -> None:
    timed = {Kind("large", OWN, False, 4, 1): 10.0, Kind("large", OWN, False, 64, 1): 16.0}
    timed |= {Kind("large", OWN, True, 4, 1): 12.0, Kind("large", OWN, True, 64, 1): 18.0}
    timed |= {Kind("large", OPENING): 5.0, Kind("large", ALONE, True, 0, 1, 0): 14.6}
    timed |= {Kind("large", ALONE, True, 1, 1, 1): 13.7, Kind("large", TURN, True, 0, 1, 0): 19.6}
    # Behind 4 and behind 64 tokens: their mean counts.
    timed |= {Kind("large", TURN, True, 4, 1, 1): 13.5, Kind("large", TURN, True, 64, 1, 1): 18.5}
    small = {kind._replace(role="small"): seconds for kind, seconds in timed.items()}
    found = costs_of("large", 10, timed | small)

    assert (found.chosen, found.scored) == ({4: {1: 10.0}, 64: {1: 16.0}}, {4: {1: 12.0}, 64: {1: 18.0}})
    # A scored call behind nothing takes 11.6 s among its own, behind one token 11.7.
    assert found.opening == 5.0
    assert (found.alone, found.turns) == (pytest.approx((3.0, 2.0)), pytest.approx((8.0, 1.0)))
    # A turn of a small model's is of several drafts.
    assert costs_of("small", 10, small).turns == pytest.approx((8.0 * DRAFTS, 1.0 * DRAFTS))


class Clocked:
    """Sessions that take 3 s to open, a second a row, one more where scored, 7 after the other model's, 20 at first."""

    device = "cpu"

    def __init__(self, *roles: str) -> None:
        self.models = dict.fromkeys(roles)
        self.seconds, self.last, self.cold = 0.0, "", set(roles)

    def limits(self, max_tokens: int) -> Limits:
        return Limits(max_tokens, 0, frozenset({1}))

    def encode(self, role: str, source: Any) -> str:
        # Behind the encoders each model's weights are gone.
        self.seconds, self.cold = self.seconds + 1000.0, set(self.models)
        return role

    def session(self, role: str, encoded: str, limits: Limits) -> Any:
        assert role == encoded
        self.seconds += 3.0
        session = SimpleNamespace(length=0)

        def spend(seconds: float) -> None:
            self.seconds += seconds

        def extend(tokens: list[int]) -> Any:
            assert set(tokens) == {0}
            displaced = 20.0 if role in self.cold else 7.0 if self.last not in ("", role) else 0.0
            self.cold.discard(role)
            spend(len(tokens) + displaced)
            self.last = role
            session.length += len(tokens)
            return SimpleNamespace(argmax=lambda: None, max_prob=lambda: spend(1.0), logprob=lambda tokens: spend(0.5))

        def truncate(length: int) -> None:
            session.length = length

        session.extend, session.truncate = extend, truncate
        return session


def _bench(monkeypatch: pytest.MonkeyPatch, *roles: str, decodings: int = 1, rounds: int = 5) -> dict[str, CallCosts]:
    pair: Any = Clocked(*roles)
    source: Any = SimpleNamespace(ids=SimpleNamespace(shape=(1, 10)))
    monkeypatch.setattr(call_bench, "now", lambda device: pair.seconds)
    bench = CallBench(pair, source, Limits(8, 0, frozenset({1})), decodings)
    for _ in range(rounds):
        bench.round()
    return bench.costs()


def test_the_bench_times_calls_among_their_own_kind_and_in_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _bench(monkeypatch, "large", "small", decodings=9)

    for role in ("large", "small"):
        rows = {n: float(n) for n in ROWS[role]}
        assert found[role].chosen == dict.fromkeys(CONTEXTS, rows)
        # Reading a window of drafts takes half a second more.
        read = {n: n + (1.0 if n == 1 else 1.5) for n in rows}
        assert found[role].scored == dict.fromkeys(CONTEXTS, read)
        assert (found[role].source, found[role].opening) == (10, 3.0)
    # With nine decodings behind each run of the encoders, what the encoders displaced is seldom missing.
    assert found["large"].turns == found["small"].turns == (7.0,) * TURNS
    assert gc.isenabled()


def test_behind_the_encoders_a_first_call_fetches_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _bench(monkeypatch, "large")

    assert list(found) == ["large"]
    assert (found["large"].alone, found["large"].turns) == ((20.0, *[0.0] * (TURNS - 1)), ())


def test_what_is_forgotten_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    pair: Any = Clocked("large")
    source: Any = SimpleNamespace(ids=SimpleNamespace(shape=(1, 10)))
    monkeypatch.setattr(call_bench, "now", lambda device: pair.seconds * 100)
    bench = CallBench(pair, source, Limits(8, 0, frozenset({1})))
    bench.round()
    bench.forget()
    monkeypatch.setattr(call_bench, "now", lambda device: pair.seconds)
    bench.round()

    assert bench.costs()["large"].opening == 3.0


@pytest.mark.parametrize(("texts", "rounds"), [(2, 10), (4, 12), (9, 9), (20, 20), (100, 100), (101, 51), (1000, 100)])
def test_rounds_lie_between_the_texts_enough_for_a_median_and_not_without_end(texts: int, rounds: int) -> None:
    assert sum(rounds_before(number, texts) for number in range(texts)) == rounds


def test_encoders_are_linear_in_flops() -> None:
    fitted = fit_encoder([100, 200, 300], [2.0, 3.0, 4.0])

    assert fitted == EncoderCosts(pytest.approx(1.0), pytest.approx(0.01))
    assert fitted.seconds(500) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("flops", "seconds", "base", "slope"),
    [
        ([100, 100], [2.0, 4.0], 3.0, 0.0),  # of one length
        ([100, 200], [4.0, 2.0], 3.0, 0.0),  # longer and quicker is noise
        ([100, 200], [1.0, 9.0], 0.0, 5.0 / 150),  # steeper than FLOPs: a text of none would cost less than nothing
    ],
)
def test_an_encoders_line_has_neither_a_negative_slope_nor_a_negative_start(
    flops: list[int], seconds: list[float], base: float, slope: float
) -> None:
    assert fit_encoder(flops, seconds) == EncoderCosts(pytest.approx(base), pytest.approx(slope))
