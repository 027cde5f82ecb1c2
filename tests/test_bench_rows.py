"""The bench's rows, from turns made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from bench import pairs, steps, watch, whole
from bench.baselines import same_tokens
from bench.interleave import Turn
from bild_bench.decoding.bild import BildSettings
from tests.made_benches import clock, turns


def test_vanilla_is_held_against_everyone_over_the_same_texts() -> None:
    everyone = {
        steps.OURS: turns(1.0, 3.0),
        steps.LIBRARY: turns(4.0, 4.0),
        "CTranslate2 float32": turns(1.0, 2.0, tokens=(5, 7)),
        # A step of 0.5 seconds; of three tokens the last two are timed.
        steps.LIMIT: [Turn(0.5), Turn(0.5)],
    }
    rows = steps.vanilla_rows("t5-large", everyone, {"int8": "not there"}, frozenset({1}))
    assert [(row.contestant, row.ratio, row.target, row.reached) for row in rows] == [
        ("over transformers generate", 2.0, 2.0, True),
        ("over CTranslate2 float32", 0.75, 1.0, False),
        ("over CTranslate2 int8", None, None, None),
        ("of machine's limit", 2.0, 1.25, False),
    ]
    assert rows[0].note == "same tokens on 2 of 2 texts"
    assert rows[1].note == "same tokens on 0 of 2 texts"
    assert rows[2].note == "not there"
    assert rows[3].note == "1000.00 ms per token, limit 500.00 ms"


def test_whole_texts_are_held_against_whole_texts() -> None:
    everyone = {steps.OURS: turns(1.0, 3.0), steps.LIBRARY: turns(4.0, 8.0)}
    rows = whole.whole_rows("t5-large", everyone, "not there", frozenset({1}))
    assert [(row.contestant, row.ratio, row.target, row.note) for row in rows] == [
        ("over transformers generate", 3.0, None, "same tokens on 2 of 2 texts; 6000.00 and 2000.00 ms per text"),
        ("over CTranslate2 float32", None, None, "not there"),
    ]


def test_the_end_token_does_not_tell_outputs_apart() -> None:
    found = {"ours": turns(1.0, tokens=(5, 6, 1)), "other": turns(1.0, tokens=(5, 6)), "third": turns(1.0, tokens=(5,))}
    assert same_tokens(found, "ours", frozenset({1})) == {"other": 1, "third": 0}


def test_the_fastest_point_that_loses_little_enough_is_picked() -> None:
    slow, fast, lossy = BildSettings(0.9, 1.0), BildSettings(0.7, 2.0), BildSettings(0.1, 4.0)
    points = [pairs.Swept(slow, 3.0, 40.0), pairs.Swept(fast, 2.0, 39.0), pairs.Swept(lossy, 1.0, 30.0)]
    assert pairs.pick(points, 40.0) == slow
    assert pairs.pick(points, 39.0) == fast
    assert pairs.pick(points, 40.1) is None


def races(settings: BildSettings, gain: float, seconds: float = 2.0) -> tuple[pairs.Race, pairs.Race]:
    """Two texts of 2 s each: vanilla takes 4 s, the faster assisted generation 5 s."""
    (slow, fast), own = (one.label() for one in pairs.ASSISTED), settings.label()
    point = turns(seconds, seconds)
    bleus, gains = {own: 40.0 + gain}, {own: (gain, gain - 0.25, gain + 0.25)}
    ours = pairs.Race(
        {pairs.VANILLA: turns(4.0, 4.0), own: point}, {pairs.VANILLA: 40.0, **bleus}, gains, pairs.VANILLA
    )
    library = {slow: turns(9.0, 9.0), fast: turns(6.0, 4.0), own: point}
    return ours, pairs.Race(library, {slow: 40.0, fast: 40.0, **bleus}, gains, fast)


def test_bild_is_held_against_assisted_generation_and_our_vanilla() -> None:
    settings = BildSettings(0.5, 2.0)
    rows = pairs.pair_rows("pair", {0.0: settings, 1.0: None}, *races(settings, 0.0), "small model: own")
    assert [(row.ratio, row.target, row.reached) for row in rows] == [
        (2.5, 2.0, True),
        (2.0, 1.85, True),
        (None, 2.12, None),
    ]
    told = "BLEU 40.00 against 40.00 (+0.00 [-0.25, +0.25]); small model: own"
    assert [row.note for row in rows[:2]] == [f"fb=0.5 rb=2 over n=5 conf=0; {told}", f"fb=0.5 rb=2; {told}"]


def test_a_gain_that_costs_too_much_quality_reaches_no_target() -> None:
    settings = BildSettings(0.5, 2.0)
    chosen = {0.0: settings, 1.0: settings}
    rows = pairs.pair_rows("pair", chosen, *races(settings, -0.5), "")
    assert [(row.ratio, row.reached) for row in rows] == [(2.5, False), (2.0, False), (2.0, False)]
    assert "BLEU 39.50 against 40.00 (-0.50 [-0.75, -0.25])" in rows[1].note
    # 2.0x is below 2.12x, whatever the quality; with a lower time the point within one BLEU counts.
    rows = pairs.pair_rows("pair", chosen, *races(settings, -0.5, seconds=1.0), "")
    assert [row.reached for row in rows] == [False, False, True]


def test_time_inside_is_that_of_passes_and_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rows:
        def __len__(self) -> int:
            return 2

        def last(self) -> Rows:
            return self

        def argmax(self) -> list[int]:
            return [3, 4]

        def max_prob(self) -> list[float]:
            return [0.5, 0.25]

        def logprob(self, tokens: Any, first: int = 0) -> list[float]:
            return [-1.0]

    class Session:
        length = 5

        def extend(self, tokens: Any) -> Rows:
            return Rows()

    inside = watch.Inside()
    clock(monkeypatch, 0.0, 1.0, 10.0, 12.0, 20.0, 24.0, 30.0, 38.0)
    rows = watch.WatchedSession(Session(), inside).extend([1, 2])
    last = rows.last()
    found = last.argmax(), last.max_prob(), last.logprob([3]), len(last)
    assert found == ([3, 4], [0.5, 0.25], [-1.0], 2)
    assert inside.seconds == 1.0 + 2.0 + 4.0 + 8.0
