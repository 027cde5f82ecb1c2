"""Predicted seconds of calls, by hand: every cost below was put there."""

from __future__ import annotations

import gc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bild_bench.decoding.records import Limits
from bild_bench.measure import call_bench
from bild_bench.measure.call_bench import CONTEXTS, ROWS, bench_calls, costs_of
from bild_bench.measure.call_costs import CallCosts, EncoderCosts, fit_encoder, fit_loop, predict_decoding
from bild_bench.measure.call_record import Recorded
from bild_bench.measure.operations import DecoderCall

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


def test_a_text_is_the_sum_of_its_openings_calls_and_switches() -> None:
    costs = {
        "large": replace(LARGE, opening=3.0, switch=7.0, loop=0.5),
        "small": replace(SMALL, opening=2.0, switch=0.125, loop=0.25),
    }
    calls = [_call("small"), _call("small", scored=True), _call("large", 4, scored=True), _call("small")]

    # Opening 5; S 1.25, then 1.75; L 16 + 5, 0.5 and 7 for the change; S 1.25 and 0.125 for the change.
    assert predict_decoding(costs, calls) == pytest.approx(5 + 1.25 + 1.75 + 28.5 + 1.375)
    assert predict_decoding({"large": costs["large"]}, [_call(), _call()]) == pytest.approx(3 + 2 * 10.5)


def test_what_was_timed_becomes_a_models_costs() -> None:
    solo = {("large", False, 4, 1): 10.0, ("large", False, 64, 1): 16.0, ("small", False, 4, 1): 99.0}
    solo |= {("large", True, 4, 1): 12.0, ("large", True, 64, 1): 18.0}
    found = costs_of("large", 10, solo, first=14.6, turn=13.5)

    assert (found.chosen, found.scored) == ({4: {1: 10.0}, 64: {1: 16.0}}, {4: {1: 12.0}, 64: {1: 18.0}})
    # The first token behind nothing takes 9.6 s; a scored call among its own 12 s.
    assert (found.opening, found.switch) == (pytest.approx(5.0), pytest.approx(1.5))
    cheaper = costs_of("large", 10, solo, first=1.0, turn=1.0)
    assert (cheaper.opening, cheaper.switch) == (0.0, 0.0)
    assert costs_of("large", 10, solo, first=14.6, turn=None).switch == 0.0


class Clocked:
    """Sessions whose calls take a second a row, one more where scored, and seven after the other model's calls."""

    device = "cpu"

    def __init__(self, *roles: str) -> None:
        self.models = dict.fromkeys(roles)
        self.seconds, self.last = 0.0, ""

    def encode(self, role: str, source: Any) -> str:
        return role

    def session(self, role: str, encoded: str, limits: Limits) -> Any:
        assert role == encoded
        self.seconds += 3.0

        def spend(seconds: float) -> None:
            self.seconds += seconds

        def extend(tokens: list[int]) -> Any:
            assert set(tokens) == {0}
            spend(len(tokens) + (7.0 if self.last not in ("", role) else 0.0))
            self.last = role
            return SimpleNamespace(argmax=lambda: None, max_prob=lambda: spend(1.0))

        return SimpleNamespace(extend=extend, truncate=lambda length: None)


def _bench(monkeypatch: pytest.MonkeyPatch, *roles: str) -> dict[str, CallCosts]:
    pair: Any = Clocked(*roles)
    source: Any = SimpleNamespace(ids=SimpleNamespace(shape=(1, 10)))
    monkeypatch.setattr(call_bench, "now", lambda device: pair.seconds)
    return bench_calls(pair, source, Limits(8, 0, frozenset({1})))


def test_the_bench_times_calls_among_their_own_kind_and_the_change_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _bench(monkeypatch, "large", "small")

    for role in ("large", "small"):
        rows = {n: float(n) for n in ROWS[role]}
        assert found[role].chosen == dict.fromkeys(CONTEXTS, rows)
        assert found[role].scored == {context: {n: n + 1.0 for n in rows} for context in CONTEXTS}
        assert found[role].switch == 7.0
        assert found[role].source == 10
        assert found[role].opening == 3.0
    assert gc.isenabled()


def test_one_model_alone_never_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _bench(monkeypatch, "large")

    assert list(found) == ["large"]
    assert (found["large"].switch, found["large"].opening) == (0.0, 3.0)


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
