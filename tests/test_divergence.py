"""Do methods that claim vanilla's tokens deliver them? Where they do not, the position and the margin, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.decoding.methods import METHODS
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Counters, Decoded, Limits
from bild_bench.measure.divergence import with_divergence
from bild_bench.measure.timing import Divergence, Outcome, time_text
from bild_bench.models.pair import Pair, Source
from bild_bench.plan import Point, make_point
from tests.checkpoints import VOCABULARY, save_t5
from tests.method_pairs import TEXTS, limits_of, load_both
from tests.tables import END, TableSession, limits, written

SOURCE = Source(torch.zeros((1, 1), dtype=torch.long), False)
LARGE = written({(): {2: 0.5, 3: 0.25}, (2,): {4: 0.4, 5: 0.1}, (2, 4): {END: 0.9}})


class TablePair:
    """A pair whose large model is a table; it refuses to be asked for the small one."""

    def __init__(self) -> None:
        self.opened = 0

    def encode(self, role: str, source: Source) -> None:
        assert role == "large"

    def session(self, role: str, encoded: None, limits: Limits) -> TableSession:
        self.opened += 1
        return TableSession(LARGE)


def outcome(mode: str, tokens: Sequence[int] | None, **settings: Any) -> Outcome:
    decoded = None if tokens is None else Decoded(tuple(tokens), Counters(), False)
    return Outcome(make_point(mode, settings), 0, decoded, error="failed" if tokens is None else None)


def compared(*outcomes: Outcome) -> tuple[list[Divergence | None], TablePair]:
    pair = TablePair()
    found = with_divergence(pair, SOURCE, outcomes, limits(10))  # type: ignore[arg-type]
    assert [one.point for one in found] == [one.point for one in outcomes]
    return [one.divergence for one in found], pair


VANILLA = (2, 4, END)


def test_equal_outputs_diverge_nowhere_and_ask_no_model() -> None:
    found, pair = compared(outcome("vanilla", VANILLA), outcome("speculative", VANILLA))
    assert found == [None, None]
    assert pair.opened == 0


@pytest.mark.parametrize(
    ("tokens", "position", "margin"),
    [
        ((3, 4, END), 0, math.log(0.5 / 0.25)),
        ((2, 5, END), 1, math.log(0.4 / 0.1)),
        ((2, 5), 1, math.log(0.4 / 0.1)),  # the lengths do not matter
        ((2, 4, 6, 7, END), 2, math.log(0.9 / (0.1 / 7))),
    ],
)
def test_position_and_margin_are_those_of_the_first_difference(
    tokens: tuple[int, ...], position: int, margin: float
) -> None:
    (_, found), pair = compared(outcome("vanilla", VANILLA), outcome("speculative", tokens))
    assert found is not None
    assert found.position == position
    assert found.margin == pytest.approx(margin)
    assert pair.opened == 1


@pytest.mark.parametrize(("tokens", "position"), [((2, 4), 2), ((2, 4, END, 5), 3), ((), 0)])
def test_an_output_that_only_stops_elsewhere_is_no_tie(tokens: tuple[int, ...], position: int) -> None:
    (_, found), _ = compared(outcome("vanilla", VANILLA), outcome("speculative", tokens))
    assert found == Divergence(position, math.inf)


def test_an_id_that_the_large_model_does_not_score_is_no_tie() -> None:
    (_, found), _ = compared(outcome("vanilla", VANILLA), outcome("hf-greedy", (2, 8, END)))
    assert found == Divergence(1, math.inf)


CLAIMS = [
    ("speculative", {}),
    ("speculative", {"gamma": 2, "adaptive": True}),
    ("bild", {"alpha_fb": 1.0}),
    ("bild-early-exit", {"alpha_fb": 1.0}),
    ("calm", {"threshold": 1.0}),
    ("hf-greedy", {}),
    ("hf-assisted", {}),
]
NO_CLAIMS = [
    ("small", {}),
    ("bild", {}),
    ("bild", {"alpha_fb": 0.99}),
    ("bild-early-exit", {}),
    ("calm", {"threshold": 0.9}),
    ("calm", {"threshold": 1.0, "decay": True}),
    ("oracle", {}),
]


@pytest.mark.parametrize(("mode", "settings"), CLAIMS)
def test_every_lossless_method_is_compared_wherever_vanilla_stands(mode: str, settings: dict[str, Any]) -> None:
    found, _ = compared(outcome(mode, (3, 4, END), **settings), outcome("vanilla", VANILLA))
    assert found == [Divergence(0, pytest.approx(math.log(2))), None]  # type: ignore[arg-type]


@pytest.mark.parametrize(("mode", "settings"), NO_CLAIMS)
def test_a_method_that_claims_nothing_is_not_compared(mode: str, settings: dict[str, Any]) -> None:
    assert compared(outcome("vanilla", VANILLA), outcome(mode, (3, 4, END), **settings))[0] == [None, None]


def test_every_method_is_in_one_list_or_both() -> None:
    assert {"vanilla", *(mode for mode, _ in CLAIMS + NO_CLAIMS)} == set(METHODS)


def test_what_failed_is_compared_with_nothing() -> None:
    assert compared(outcome("vanilla", None), outcome("speculative", (3,)))[0] == [None, None]
    assert compared(outcome("vanilla", VANILLA), outcome("speculative", None))[0] == [None, None]
    assert compared(outcome("speculative", (3,)))[0] == [None]


# --- on a real pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    large, small = (
        save_t5(tmp_path_factory.mktemp("model"), seed=seed, vocab_size=VOCABULARY, num_layers=3, num_decoder_layers=3)
        for seed in (1, 2)
    )
    return load_both(large, small, library=("large", "small"))


def decoded(pair: Pair, points: Sequence[Point], text: str) -> list[Outcome]:
    source, where = pair.tokenise(text, 50), limits_of(40)
    return with_divergence(pair, source, time_text(pair, source, points, where), where)


def test_no_lossless_method_diverges_in_float64(pair: Pair) -> None:
    points = [make_point("vanilla", {}), *(make_point(mode, settings) for mode, settings in CLAIMS)]
    for text in TEXTS:
        for one in decoded(pair, points, text):
            assert (one.error, one.divergence) == (None, None), one.point.label


class Careless(Greedy):
    """Keeps the first draft of a window whatever the large model says."""

    def judge(self, drafts: Sequence[int], proposals: Sequence[Any], rows: Any) -> Any:
        verdict = super().judge(drafts, proposals, rows)
        chosen = rows.argmax()
        return verdict if verdict.kept else type(verdict)(1, chosen[1] if len(chosen) > 1 else None)


def test_a_broken_acceptance_rule_shows_a_margin_far_from_a_tie(pair: Pair) -> None:
    source, where = pair.tokenise(TEXTS[0], 50), limits_of(40)
    points = [make_point("vanilla", {}), make_point("speculative", {"gamma": 2})]
    outcomes = time_text(pair, source, points, where, Careless)
    found = with_divergence(pair, source, outcomes, where)[1].divergence
    assert found is not None
    assert found.margin > 0.1
    # By the library's own pass over the same beginning.
    expected, other = (one.decoded.tokens for one in outcomes if one.decoded is not None)
    begun = torch.tensor([[0, *expected[: found.position]]])
    logits = pair.library["large"](input_ids=source.ids, decoder_input_ids=begun).logits[0, -1]
    assert expected[: found.position] == other[: found.position]
    margin = float(logits[expected[found.position]] - logits[other[found.position]])
    assert found.margin == pytest.approx(margin, abs=1e-9)


def test_a_tie_broken_otherwise_shows_a_margin_of_rounding(tmp_path: Path) -> None:
    """Two tokens with the same row in the head: which of them is taken is the order of operations."""
    from safetensors.torch import load_file, save_file

    folder = save_t5(tmp_path, seed=3, vocab_size=VOCABULARY, tied=False, gated=True)
    weights = load_file(folder / "model.safetensors")
    vanilla = load_both(folder, folder)
    first = decoded(vanilla, [make_point("vanilla", {})], TEXTS[0])[0].decoded
    assert first is not None
    twin = next(token for token in range(3, VOCABULARY) if token not in first.tokens)
    weights["lm_head.weight"][twin] = weights["lm_head.weight"][first.tokens[0]]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tied = load_both(folder, folder)
    (one,) = decoded(tied, [make_point("vanilla", {})], TEXTS[0])
    assert one.decoded is not None
    winner = one.decoded.tokens[0]
    loser = twin if winner == first.tokens[0] else first.tokens[0]
    other = Outcome(make_point("speculative", {}), 1, Decoded((loser,), Counters(), True))
    found = with_divergence(tied, tied.tokenise(TEXTS[0], 50), [one, other], limits_of(40))[1].divergence
    assert found is not None
    assert found.position == 0
    assert abs(found.margin) < 1e-9
