"""Speculative decoding samples from the target distribution: each sequence's probability against how often it is drawn.

The statistic is Pearson's. Its tail probability needs no table and no further package: a chi-square variable with k
degrees of freedom exceeds x with probability Q(k/2, x/2), the regularised upper incomplete gamma function, which is
`torch.special.gammaincc`. Seeds are fixed, so a test passes always or never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.api import load_pair
from bild_bench.decoding import sampling as rules
from bild_bench.decoding.alone import AloneSettings, vanilla
from bild_bench.decoding.methods import METHODS
from bild_bench.decoding.picking import Sampling
from bild_bench.decoding.records import Limits
from bild_bench.decoding.sampling import Sampler, seed_of
from bild_bench.decoding.session import Sessions
from bild_bench.decoding.speculative import SpeculativeSettings, speculative
from bild_bench.models.opening import open_sessions
from tests.checkpoints import PIECES, save_t5, save_tokenizer
from tests.tables import END, START, Table, TableRows, TableSession, limits, random_table

Sequence = tuple[int, ...]
HOW = Sampling(temperature=0.9, top_k=6, top_p=0.95)
LENGTH, VOCABULARY, DRAWS = 3, 8, 50_000
SMALL, LARGE = (random_table(seed, VOCABULARY, sharpness=1.0) for seed in (3, 4))


def test_the_tail_probability_is_that_of_the_printed_tables() -> None:
    # Upper 5 % and 0.1 % points of the chi-square distribution, as printed in every statistics text.
    for freedom, critical, share in ((1, 3.841, 0.05), (10, 18.307, 0.05), (100, 124.342, 0.05), (10, 29.588, 0.001)):
        assert tail(critical, freedom) == pytest.approx(share, rel=2e-3)


def tail(statistic: float, freedom: int) -> float:
    """How likely a chi-square variable is to exceed the statistic."""
    halves = (torch.tensor(value / 2, dtype=torch.float64) for value in (freedom, statistic))
    return float(torch.special.gammaincc(*halves))


def p_value(drawn: Counter[Sequence], distribution: dict[Sequence, float]) -> float:
    """The probability of counts at least as far from the target distribution; cells expected below 5 are pooled."""
    assert sum(distribution.values()) == pytest.approx(1)
    if not set(drawn) <= set(distribution):
        return 0.0  # what cannot be drawn was drawn
    draws = drawn.total()
    cells = [(drawn[sequence], draws * share) for sequence, share in distribution.items() if draws * share >= 5]
    seen, expected = draws - sum(cell[0] for cell in cells), draws - sum(cell[1] for cell in cells)
    if expected > 1e-6:
        cells.append((seen, expected))
    assert len(cells) > 10, "a test of hardly any cells would show nothing"
    return tail(sum((seen - expected) ** 2 / expected for seen, expected in cells), len(cells) - 1)


def warped_by_hand(row: list[float]) -> list[float]:
    """HOW in plain arithmetic, apart from the code under test."""
    weights = [prob ** (1 / HOW.temperature) for prob in row]
    ranked = sorted(range(len(row)), key=lambda token: -weights[token])[: HOW.top_k]
    total, before, kept = sum(weights[token] for token in ranked), 0.0, []
    for token in ranked:
        if before < HOW.top_p * total:
            kept.append(token)
        before += weights[token]
    mass = sum(weights[token] for token in kept)
    return [weights[token] / mass if token in kept else 0.0 for token in range(len(row))]


def enumerated(row_of: Callable[[Sequence], list[float]], ends: Iterable[int]) -> dict[Sequence, float]:
    """The target's distribution: the probability of every text, from its warped rows by the tokens before."""
    finished: dict[Sequence, float] = {}
    open_texts: dict[Sequence, float] = {(): 1.0}
    while open_texts:
        prefix, share = open_texts.popitem()
        for token, prob in enumerate(warped_by_hand(row_of(prefix))):
            if prob > 0:
                text = (*prefix, token)
                (finished if token in ends or len(text) == LENGTH else open_texts)[text] = share * prob
    return finished


@pytest.fixture(autouse=True)
def warped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is warped by the code under test once and then remembered: 50,000 draws need the same few over and over."""
    warp, known = rules.warp, {}

    def remembered(probs: torch.Tensor, how: Sampling) -> torch.Tensor:
        key = (probs.shape, probs.numpy().tobytes())
        if key not in known:
            known[key] = warp(probs, how)
        return known[key]

    monkeypatch.setattr(rules, "warp", remembered)


class FastRows(TableRows):
    """Rows whose tensor is made once."""

    def probs(self) -> torch.Tensor:
        return _tensor(tuple(map(tuple, self._rows)))

    def last(self) -> FastRows:
        return FastRows(self._rows[-1:])


@cache
def _tensor(rows: tuple[tuple[float, ...], ...]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


class FastSession(TableSession):
    """A table session over `FastRows`."""

    def extend(self, tokens: Any) -> FastRows:
        return FastRows(super().extend(tokens)._rows)


def tabled(table: Table) -> Table:
    """The same table, each row worked out once."""
    return cache(table)


def drawn_texts(small: Table, large: Table, gamma: int, draws: int = DRAWS) -> Counter[Sequence]:
    """Texts drawn by speculative decoding, one stream of random numbers for all."""
    picker, how, where = Sampler(HOW, seed=11), SpeculativeSettings(gamma), limits(LENGTH)
    small, large = tabled(small), tabled(large)
    return Counter(
        speculative(Sessions(FastSession(large), FastSession(small)), how, where, picker).tokens for _ in range(draws)
    )


def target() -> dict[Sequence, float]:
    return enumerated(lambda prefix: LARGE((START, *prefix)), {END})


@pytest.mark.parametrize("gamma", [1, 2, 4])
def test_the_distribution_is_the_large_models(gamma: int) -> None:
    distribution = target()
    assert any(text[-1] == END and len(text) < LENGTH for text in distribution)
    assert p_value(drawn_texts(SMALL, LARGE, gamma), distribution) > 0.001


@pytest.mark.parametrize("gamma", [1, 2, 4])
def test_the_distribution_is_the_large_models_where_it_drafts_itself(gamma: int) -> None:
    assert p_value(drawn_texts(LARGE, LARGE, gamma, draws=10_000), target()) > 0.001


def test_texts_with_seeds_of_their_own_have_the_distribution_too() -> None:
    # As in an experiment: a fresh picker for each draw.
    where, how = limits(LENGTH), SpeculativeSettings(2)
    small, large = tabled(SMALL), tabled(LARGE)
    drawn = Counter(
        speculative(
            Sessions(FastSession(large), FastSession(small)), how, where, Sampler(HOW, seed_of(0, "a", draw))
        ).tokens
        for draw in range(10_000)
    )
    assert p_value(drawn, target()) > 0.001


def test_vanilla_has_the_distribution_by_the_same_yardstick() -> None:
    picker, where, large = Sampler(HOW, seed=12), limits(LENGTH), tabled(LARGE)
    drawn = Counter(vanilla(Sessions(FastSession(large)), AloneSettings(), where, picker).tokens for _ in range(10_000))
    assert p_value(drawn, target()) > 0.001


BROKEN = {
    "every draft is kept": ("accepted", lambda p, q, uniform: True),
    "none is kept": ("accepted", lambda p, q, uniform: False),
    "kept by p alone": ("accepted", lambda p, q, uniform: uniform < p),
    "kept by q over p": ("accepted", lambda p, q, uniform: uniform * p < q),
    "kept where p is larger": ("accepted", lambda p, q, uniform: p >= q),
    "replaced from p": ("residual", lambda p, q: p),
    "replaced from q": ("residual", lambda p, q: q),
    "replaced from the wrong side": ("residual", lambda p, q: (q - p).clamp(min=0) / (q - p).clamp(min=0).sum()),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_rule_is_found_out(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, *BROKEN[broken])
    assert p_value(drawn_texts(SMALL, LARGE, 2, draws=3_000), target()) < 1e-6


def test_warping_the_two_models_differently_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    propose = Sampler.propose

    def unwarped(self: Sampler, row: TableRows) -> tuple[int, torch.Tensor]:
        return propose(self, row)[0], row.probs()[0]

    monkeypatch.setattr(Sampler, "propose", unwarped)
    assert p_value(drawn_texts(SMALL, LARGE, 2, draws=10_000), target()) < 1e-6


def test_the_distribution_of_real_models(tmp_path: Path) -> None:
    shape = {"vocab_size": VOCABULARY, "num_layers": 1, "num_decoder_layers": 1, "d_model": 8}
    for role, seed in (("large", 5), ("small", 6)):
        save_tokenizer(save_t5(tmp_path / role, seed=seed, **shape).parent / role, PIECES[:VOCABULARY])
    pair = load_pair(large=str(tmp_path / "large"), small=str(tmp_path / "small"), prefix="", dtype="float64")
    source, where, method = pair.tokenise("the dog", 8), pair.limits(LENGTH), METHODS["speculative"]
    encoded = {role: pair.encode(role, source) for role in ("large", "small")}

    def row_of(prefix: Sequence) -> list[float]:
        rows: Any = pair.session("large", encoded["large"], where).extend([where.start_id, *prefix]).last()
        return rows.probs()[0].tolist()

    distribution = enumerated(row_of, where.end_ids)
    picker, how = Sampler(HOW, seed=13), SpeculativeSettings(2)
    drawn = Counter(
        method.decode(open_sessions(pair, method, how, source, encoded, where), how, where, picker).tokens
        for _ in range(1_000)
    )
    assert p_value(drawn, distribution) > 0.001
    # The pair is no trivial one: the small model alone has quite another distribution.
    assert p_value(_small_alone(pair, encoded, where, 1_000), distribution) < 1e-6


def _small_alone(pair: Any, encoded: Any, where: Limits, draws: int) -> Counter[Sequence]:
    picker, small = Sampler(HOW, seed=14), METHODS["small"]
    return Counter(
        small.decode(
            Sessions(small=pair.session("small", encoded["small"], where)), AloneSettings(), where, picker
        ).tokens
        for _ in range(draws)
    )
