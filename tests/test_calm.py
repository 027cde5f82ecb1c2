"""CALM's rules on written-down layers (Schuster et al. 2022): when a token leaves, and what it leaves with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from bild_bench.decoding.calm import CalmSettings, calm, threshold_at
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Counters, Decoded
from bild_bench.decoding.session import Sessions
from bild_bench.errors import UsageError
from tests.tables import END, START, TableRows, limits


@dataclass(frozen=True)
class Layer:
    """What a session tells after a layer."""

    row: list[float]
    similarity: float = 0.0
    classified: float = 0.0


@dataclass
class WrittenLayers:
    """A layered session by position and layer; it insists on the protocol and keeps what was asked."""

    positions: list[list[Layer]]
    fed: list[int] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    done: int = 0

    @property
    def depth(self) -> int:
        return len(self.positions[0])

    @property
    def length(self) -> int:
        return self.done

    def embed(self, tokens: Sequence[int]) -> None:
        assert len(tokens) == 1
        assert self.done == len(self.ran), "every position is finished before the next begins"
        self.fed += tokens
        self.ran.append(0)

    def run_layer(self) -> None:
        self.ran[-1] += 1

    def rows(self) -> TableRows:
        return TableRows([self._now("row").row])

    def similarity(self) -> float:
        return self._now("similarity").similarity

    def classify(self) -> float:
        return self._now("classify").classified

    def skip_rest(self) -> None:
        self.done += 1

    def _now(self, what: str) -> Layer:
        self.asked.append((what, self.done, self.ran[-1]))
        return self.positions[self.done][self.ran[-1] - 1]


def sure_of(token: int, by: float = 1.0) -> Layer:
    """A layer that gives one of eight tokens this much more than the others."""
    rest = (1 - by) / 8
    return Layer([rest + by * (n == token) for n in range(8)])


def decode(positions: list[list[Layer]], max_tokens: int = 10, **settings: object) -> tuple[Decoded, WrittenLayers]:
    session = WrittenLayers(positions)
    outcome = calm(Sessions(layered=session), CalmSettings(**settings), limits(max_tokens), Greedy())  # type: ignore[arg-type]
    return outcome, session


def test_a_token_is_the_choice_of_the_layer_it_leaves_at() -> None:
    positions = [
        [sure_of(2, 0.1), sure_of(3, 0.95), sure_of(4)],
        [sure_of(5, 0.95), sure_of(6), sure_of(7)],
        [sure_of(5, 0.1), sure_of(6, 0.8), sure_of(END, 0.2)],
    ]
    outcome, session = decode(positions, threshold=0.9)
    assert outcome.tokens == (3, 5, END)
    assert outcome.exit_layers == (1, 1, 1)
    assert session.ran == [2, 1, 3], "no layer above the exit runs"
    assert session.fed == [START, 3, 5]
    assert outcome.counters == Counters(3, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0)
    assert [(step.position, step.author, step.kept) for step in outcome.trace()] == [(n, "L", True) for n in range(3)]


def test_the_softmax_measure_is_the_lead_of_the_best_over_the_second() -> None:
    # 0.75 is sure enough for its probability, not for its lead of 0.5; a lead equal to the threshold is enough.
    first = Layer([0.0, 0.0, 0.75, 0.25])
    outcome, _ = decode([[first, sure_of(END)]], threshold=0.51)
    assert outcome.exit_layers == (0, 1)
    outcome, _ = decode([[first, sure_of(END)]], 1, threshold=0.5)
    assert (outcome.tokens, outcome.exit_layers, outcome.hit_limit) == ((2,), (1, 0), True)


def test_the_state_measure_begins_at_the_second_layer_and_compares_with_the_one_below() -> None:
    layers = [Layer([0, 1], similarity=1.0), Layer([0, 1], similarity=0.7), Layer([0, 1], similarity=0.9), sure_of(END)]
    outcome, session = decode([layers], measure="state", threshold=0.8)
    assert outcome.exit_layers == (0, 0, 1, 0)
    assert session.asked == [("similarity", 0, 2), ("similarity", 0, 3), ("row", 0, 3)]


def test_the_classifier_decides_by_its_own_probability() -> None:
    layers = [Layer([0, 1], 1.0, classified=0.6), Layer([0, 1], 0.0, classified=0.7), Layer([0, 1])]
    outcome, session = decode([layers], measure="classifier", threshold=0.7)
    assert outcome.exit_layers == (0, 1, 0)
    assert [what for what, _, _ in session.asked] == ["classify", "classify", "row"]


def test_the_last_layer_is_not_asked() -> None:
    _, session = decode([[Layer([0, 1]), Layer([0, 1])]], measure="classifier", threshold=0.7)
    assert session.asked == [("classify", 0, 1), ("row", 0, 2)]


@pytest.mark.parametrize("measure", ["softmax", "state", "classifier"])
@pytest.mark.parametrize("threshold", [1.0, 1.5])
def test_a_threshold_of_one_is_never_reached_not_even_by_certainty(measure: str, threshold: float) -> None:
    certain = Layer([0.0, 1.0], similarity=1.0, classified=1.0)
    outcome, _ = decode([[certain] * 4], measure=measure, threshold=threshold)
    assert outcome.exit_layers == (0, 0, 0, 1)


@pytest.mark.parametrize(("measure", "first"), [("softmax", 1), ("state", 2), ("classifier", 1)])
def test_a_threshold_of_zero_is_always_reached_at_the_first_allowed_layer(measure: str, first: int) -> None:
    doubt = Layer([0.4, 0.6] if measure != "softmax" else [0.5, 0.5], similarity=-1.0, classified=0.0)
    for min_layer, expected in ((None, first), (2, 2), (3, 3), (4, 4)):
        outcome, session = decode([[doubt] * 4] * 3, 3, measure=measure, threshold=0.0, min_layer=min_layer)
        assert session.ran == [expected] * len(outcome.tokens)
        assert outcome.exit_layers == tuple(len(outcome.tokens) * (layer == expected) for layer in range(1, 5))


def test_no_layer_below_the_first_allowed_one_is_left_or_asked() -> None:
    outcome, session = decode([[sure_of(END)] * 4], min_layer=3, threshold=0.5)
    assert outcome.exit_layers == (0, 0, 1, 0)
    assert {layer for _, _, layer in session.asked} == {3}


# --- the decaying threshold: 0.9 lambda + 0.1 exp(-4 t / N), worked out with a calculator


@pytest.mark.parametrize(
    ("threshold", "position", "max_tokens", "expected"),
    [
        (0.9, 0, 100, 0.91),  # 0.81 + 0.1
        (0.9, 25, 100, 0.8467879),  # 0.81 + 0.1 / e
        (0.9, 50, 100, 0.8235335),  # 0.81 + 0.1 / e^2
        (0.9, 50, 200, 0.8467879),  # it is t / N that counts
        (0.5, 3, 4, 0.4549787),  # 0.45 + 0.1 / e^3
        (0.0, 0, 10, 0.1),
        (0.0, 10, 10, 0.0018316),  # 0.1 / e^4
        (1.0, 0, 10, 1.0),
        (1.2, 0, 10, 1.0),  # 1.18, clipped
    ],
)
def test_the_decaying_threshold(threshold: float, position: int, max_tokens: int, expected: float) -> None:
    settings = CalmSettings(threshold, decay=True)
    assert threshold_at(position, settings, limits(max_tokens)) == pytest.approx(expected, abs=1e-7)
    assert threshold_at(position, CalmSettings(threshold), limits(max_tokens)) == threshold


def test_the_threshold_decays_along_the_text_from_its_first_token() -> None:
    # lambda = 0.5, N = 4: 0.55, 0.4868, 0.4635, 0.4550. A lead of 0.47 is enough from the third token on.
    positions = [[sure_of(2, 0.47), sure_of(2)]] * 4
    outcome, session = decode(positions, 4, threshold=0.5, decay=True)
    assert session.ran == [2, 2, 1, 1]
    assert outcome.exit_layers == (2, 2)


# --- settings


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"threshold": -0.1}, "--threshold: -0.1: must be 0 or more"),
        ({"threshold": math.nan}, "--threshold: nan"),
        ({"threshold": math.inf}, "--threshold: inf"),
        ({"measure": "entropy"}, "--measure: 'entropy': must be softmax, state or classifier"),
        ({"min_layer": 0}, "--min-layer: 0: must be 1 or more"),
        ({"min_layer": 1, "measure": "state"}, "--min-layer: 1: must be 2 or more"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        CalmSettings(**settings)  # type: ignore[arg-type]
    assert str(caught.value).startswith(problem)


def test_labels_tell_points_apart() -> None:
    assert CalmSettings().label() == "softmax lambda=0.9"
    assert CalmSettings(0, "state", True, 3).label() == "state lambda=0 decay from=3"
