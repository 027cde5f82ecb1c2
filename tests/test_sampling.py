"""Warped distributions against the library's own warpers, and the two rules that keep the target distribution."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from bild_bench.decoding import sampling as module
from bild_bench.decoding.picking import Sampling, Verdict
from bild_bench.decoding.sampling import Sampler, accepted, residual, seed_of, warp
from bild_bench.errors import RunError, UsageError
from tests.tables import TableRows

WARPS = st.builds(
    Sampling, st.floats(0.05, 5), st.none() | st.integers(1, 40), st.none() | st.floats(0.01, 1, exclude_min=True)
)


def by_the_library(logits: torch.Tensor, how: Sampling) -> torch.Tensor:
    """What `generate(do_sample=True)` would draw from."""
    ids: Any = None  # the warpers do not look at them
    scores = TemperatureLogitsWarper(how.temperature)(ids, logits)
    if how.top_k is not None:
        scores = TopKLogitsWarper(how.top_k)(ids, scores)
    if how.top_p is not None:
        scores = TopPLogitsWarper(how.top_p)(ids, scores)
    return scores.softmax(dim=-1)


def distribution(*probs: float) -> torch.Tensor:
    return torch.tensor(probs, dtype=torch.float64)


@settings(max_examples=300, deadline=None)
@given(WARPS, st.integers(0, 10_000), st.integers(2, 30), st.floats(0.1, 6))
def test_the_distribution_is_the_librarys(how: Sampling, seed: int, vocabulary: int, spread: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(3, vocabulary, generator=draw, dtype=torch.float64)
    torch.testing.assert_close(warp(logits.softmax(dim=-1), how), by_the_library(logits, how))


@pytest.mark.parametrize("spread", [0.01, 3.0], ids=["a nucleus of thousands", "a small nucleus"])
def test_a_large_vocabulary_is_warped_alike(spread: float) -> None:
    logits = spread * torch.randn(2, 5000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    how = Sampling(0.7, None, 0.8)
    found = warp(logits.softmax(dim=-1), how)
    torch.testing.assert_close(found, by_the_library(logits, how))
    # Both sides of the shortcut for small nuclei are taken.
    assert (int((found > 0).sum(dim=-1).min()) > 256) == (spread < 1)


def test_temperature_top_k_and_top_p_by_hand() -> None:
    probs = distribution(0.1, 0.4, 0.2, 0.3)
    # p ** (1 / 0.5) = 0.01, 0.16, 0.04, 0.09, whose sum is 0.3.
    torch.testing.assert_close(warp(probs, Sampling(0.5)), distribution(0.01, 0.16, 0.04, 0.09) / 0.3)
    torch.testing.assert_close(warp(probs, Sampling(top_k=2)), distribution(0, 4 / 7, 0, 3 / 7))
    torch.testing.assert_close(warp(probs, Sampling(top_p=0.65)), distribution(0, 4 / 7, 0, 3 / 7))
    # Top-p sees what top-k has left: 4/7 alone reaches 0.57.
    torch.testing.assert_close(warp(probs, Sampling(top_k=2, top_p=0.57)), distribution(0, 1, 0, 0))


def test_the_token_that_reaches_top_p_is_in_and_the_next_is_out() -> None:
    probs = distribution(0.5, 0.25, 0.125, 0.125)  # sums without rounding
    assert (warp(probs, Sampling(top_p=0.5)) > 0).tolist() == [True, False, False, False]
    assert (warp(probs, Sampling(top_p=math.nextafter(0.5, 1))) > 0).tolist() == [True, True, False, False]
    assert (warp(probs, Sampling(top_p=1e-300)) > 0).tolist() == [True, False, False, False]


def test_what_leaves_a_distribution_as_it_is() -> None:
    probs = distribution(0.5, 0.2, 0.2, 0.1)
    for how in (Sampling(), Sampling(top_p=1.0), Sampling(top_k=4), Sampling(top_k=10**9), Sampling(1.0, 4, 1.0)):
        assert warp(probs, how).tolist() == probs.tolist()


def test_ties_are_all_kept_by_top_k_and_cut_from_the_highest_id_by_top_p() -> None:
    probs = distribution(0.2, 0.2, 0.4, 0.2)
    torch.testing.assert_close(warp(probs, Sampling(top_k=2)), probs)
    torch.testing.assert_close(warp(probs, Sampling(top_p=0.5)), distribution(1 / 3, 0, 2 / 3, 0))
    torch.testing.assert_close(warp(probs, Sampling(top_p=0.7)), distribution(0.25, 0.25, 0.5, 0))
    # A flat distribution, whose ties go beyond the shortcut for small nuclei.
    flat = torch.full((2, 1024), 1 / 1024, dtype=torch.float64)
    assert (warp(flat, Sampling(top_p=0.5)) > 0).tolist() == [[n < 512 for n in range(1024)]] * 2


def test_a_row_is_warped_alike_alone_and_among_others() -> None:
    draw = torch.Generator().manual_seed(1)
    # Bfloat16 makes many ties, a flat row makes the others sort the whole vocabulary.
    rows = (2 * torch.randn(6, 3000, generator=draw)).bfloat16().float().softmax(dim=-1)
    rows[3] = 1 / 3000
    how = Sampling(top_p=0.9)
    together = warp(rows, how)
    for n in range(6):
        assert torch.equal(warp(rows[n], how), together[n])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-4, 1e-38, 5e-324])
def test_a_tiny_temperature_is_the_argmax_and_its_equals(temperature: float, dtype: torch.dtype) -> None:
    rows = torch.tensor([[0.3, 0.45, 0.25, 0.0], [0.4, 0.1, 0.1, 0.4]], dtype=dtype)
    assert warp(rows, Sampling(temperature)).tolist() == [[0, 1, 0, 0], [0.5, 0, 0, 0.5]]


def test_a_huge_temperature_is_flat_over_what_has_probability() -> None:
    torch.testing.assert_close(
        warp(distribution(0.7, 0.2999, 0.0001, 0), Sampling(1e300)), distribution(1 / 3, 1 / 3, 1 / 3, 0)
    )


@pytest.mark.parametrize(
    ("p", "q", "uniform", "kept"),
    [
        (0.2, 0.5, 0.39, True),  # kept with probability 0.4
        (0.2, 0.5, 0.41, False),
        (0.5, 0.2, 0.999999, True),  # always where the large model likes it better
        (0.3, 0.3, 1 - 2**-53, True),
        (0.0, 0.5, 0.0, False),  # never where the large model may not draw it
    ],
)
def test_a_draft_is_kept_with_probability_p_over_q(p: float, q: float, uniform: float, kept: bool) -> None:
    assert accepted(p, q, uniform) is kept


def test_the_replacements_distribution_is_what_the_small_model_left_out() -> None:
    p, q = distribution(0.5, 0.3, 0.1, 0.1), distribution(0.2, 0.6, 0.0, 0.2)
    torch.testing.assert_close(residual(p, q), distribution(0.75, 0, 0.25, 0))  # 0.3 and 0.1 of 0.4
    assert residual(p, p).tolist() == p.tolist(), "no mass left: from p"


@given(st.lists(st.integers(0, 50), min_size=8, max_size=8), st.lists(st.integers(0, 50), min_size=8, max_size=8))
def test_keeping_and_replacing_together_give_p(p_weights: list[int], q_weights: list[int]) -> None:
    p_weights[0], q_weights[0] = p_weights[0] + 1, q_weights[0] + 1
    p, q = ([Fraction(weight, sum(weights)) for weight in weights] for weights in (p_weights, q_weights))
    kept = [min(one, other) for one, other in zip(p, q, strict=True)]  # q times min(1, p / q)
    replacement = residual(distribution(*map(float, p)), distribution(*map(float, q))).tolist()
    total = [float(keep) + float(1 - sum(kept)) * again for keep, again in zip(kept, replacement, strict=True)]
    assert total == pytest.approx([float(one) for one in p], abs=1e-12)


def uniforms(monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    """The sampler's uniform numbers, in the order in which it asks for them."""
    left = list(values)

    def rand(count: int, **_: Any) -> torch.Tensor:
        return torch.tensor([left.pop(0) for _ in range(count)], dtype=torch.float64)

    monkeypatch.setattr(module.torch, "rand", rand)


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 1), (0.2499, 1), (0.25, 3), (0.9999, 3)])
def test_a_token_is_drawn_by_its_share(monkeypatch: pytest.MonkeyPatch, uniform: float, token: int) -> None:
    uniforms(monkeypatch, uniform)
    assert Sampler(Sampling(), 0).pick(TableRows([[0.0, 0.25, 0.0, 0.75, 0.0]])) == token


# L's distribution and S's over three tokens, at two positions, and L's once more after them.
P = [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]
Q = [distribution(0.2, 0.6, 0.2), distribution(0.1, 0.8, 0.1)]


@pytest.mark.parametrize(
    ("drafts", "drawn", "verdict"),
    [
        # Draft 1 is kept below 0.3/0.6 = 0.5; rejected, the residual is token 0 alone.
        ([1, 1], (0.51, 0.0, 0.99), Verdict(0, 0)),
        # Draft 1 again is kept below 0.2/0.8 = 0.25; the residual there is 0.1 for token 0 and 0.5 for token 2.
        ([1, 1], (0.49, 0.26, 0.16), Verdict(1, 0)),
        ([1, 1], (0.49, 0.26, 0.17), Verdict(1, 2)),
        # All kept: one more from L's last row.
        ([1, 1], (0.49, 0.24, 0.05), Verdict(2, 0)),
        ([1, 1], (0.49, 0.24, 0.15), Verdict(2, 1)),
        ([1, 1], (0.49, 0.24, 0.95), Verdict(2, 2)),
        # L likes both better than S does: kept whatever is drawn.
        ([0, 2], (0.999, 0.999, 0.5), Verdict(2, 1)),
    ],
)
def test_a_window_is_judged_by_hand(
    monkeypatch: pytest.MonkeyPatch, drafts: list[int], drawn: tuple[float, ...], verdict: Verdict
) -> None:
    uniforms(monkeypatch, *drawn)
    assert Sampler(Sampling(), 0).judge(drafts, Q, TableRows(P)) == verdict


def test_a_kept_window_that_ends_the_text_draws_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    uniforms(monkeypatch, 0.1, 0.1)
    assert Sampler(Sampling(), 0).judge([1, 1], Q, TableRows(P[:2])) == Verdict(2, None)


def test_a_broken_model_is_an_error_and_no_draw() -> None:
    broken = TableRows([[math.nan] * 3])  # the softmax of scores one of which is not finite
    sampler = Sampler(Sampling(top_p=0.8), 0)
    for pick in (sampler.pick, sampler.propose, lambda rows: sampler.judge([1], [distribution(0, 1, 0)], rows)):
        with pytest.raises(RunError, match="no distribution"):
            pick(broken)


def test_seeds_tell_seed_text_and_draw_apart() -> None:
    made = {seed_of(seed, text, draw) for seed in range(3) for text in ("a", "b", "1/2") for draw in range(3)}
    assert len(made) == 27
    assert all(0 <= seed < 2**63 for seed in made)
    # The first 16 digits of `printf 0/a/0 | sha256sum`, halved.
    assert seed_of(0, "a", 0) == 0xD03369E0E49F46CC // 2


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_a_temperature_is_above_zero(temperature: float) -> None:
    with pytest.raises(UsageError, match=r"--temperature.*above 0.*greedy"):
        Sampling(temperature=temperature)


@pytest.mark.parametrize("top_k", [0, -1])
def test_top_k_is_one_at_least(top_k: int) -> None:
    with pytest.raises(UsageError, match=r"--top-k.*1 or more"):
        Sampling(top_k=top_k)


@pytest.mark.parametrize("top_p", [0.0, -0.1, 1.01, math.nan])
def test_top_p_is_a_share(top_p: float) -> None:
    with pytest.raises(UsageError, match=r"--top-p.*above 0 and at most 1"):
        Sampling(top_p=top_p)
