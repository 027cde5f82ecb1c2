"""Rows of scores against a float64 log-softmax, and how often they go to the host."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bild_bench.errors import RunError
from bild_bench.models.rows import TensorRows

# Softmax of (0, ln 2, ln 5) is (1, 2, 5) / 8.
BY_HAND = torch.tensor([[0.0, math.log(2), math.log(5)], [math.log(5), 0.0, math.log(2)]])


def reading_functions() -> dict[str, Callable[[TensorRows], object]]:
    return {
        "argmax": lambda rows: rows.argmax(),
        "max_prob": lambda rows: rows.max_prob(),
        "logprob": lambda rows: rows.logprob([0, 1]),
        "logprob of nothing": lambda rows: rows.logprob([]),
    }


def test_readings_worked_by_hand() -> None:
    rows = TensorRows(BY_HAND)
    assert len(rows) == 2
    assert rows.argmax() == [2, 0]
    assert rows.max_prob() == pytest.approx([5 / 8, 5 / 8])
    assert rows.logprob([1, 1]) == pytest.approx([math.log(2 / 8), math.log(1 / 8)])
    assert rows.probs().flatten().tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8, 5 / 8, 1 / 8, 2 / 8])


@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(
            st.tuples(
                st.lists(st.floats(-80, 80, width=32), min_size=width, max_size=width), st.integers(0, width - 1)
            ),
            min_size=1,
            max_size=4,
        )
    )
)
def test_readings_are_those_of_a_log_softmax_in_float64(scored: list[tuple[list[float], int]]) -> None:
    scores, tokens = [row for row, _ in scored], [token for _, token in scored]
    expected = torch.log_softmax(torch.tensor(scores, dtype=torch.float64), dim=-1)
    rows = TensorRows(torch.tensor(scores))
    assert rows.logprob(tokens) == pytest.approx(
        [float(expected[row, token]) for row, token in enumerate(tokens)], abs=1e-4
    )
    assert rows.max_prob() == pytest.approx(expected.max(-1).values.exp().tolist(), abs=1e-5)
    assert all(0 <= value <= 1 for value in rows.max_prob())
    assert rows.argmax() == [row.index(max(row)) for row in scores]
    torch.testing.assert_close(rows.probs().double(), expected.exp(), atol=1e-5, rtol=0)


def test_float64_stays_float64() -> None:
    rows = TensorRows(torch.tensor([[0.0, 1e-10]], dtype=torch.float64))
    assert rows.argmax() == [1]
    assert rows.max_prob()[0] - 0.5 == pytest.approx(0.25e-10, rel=1e-3, abs=0)
    assert rows.probs().dtype == torch.float64


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16])
def test_half_precision_scores_are_read_in_float32(narrow: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(5)
    scores = (4 * torch.randn((3, 400), generator=generator)).to(narrow)
    expected = torch.log_softmax(scores.double(), dim=-1)
    rows = TensorRows(scores)
    assert rows.logprob([7, 8, 9]) == pytest.approx([float(expected[i, 7 + i]) for i in range(3)], abs=1e-5)
    assert rows.max_prob() == pytest.approx(expected.max(-1).values.exp().tolist(), abs=1e-6)
    assert rows.probs().dtype == torch.float32


def test_fewer_tokens_than_rows_read_the_first_rows() -> None:
    shifted = BY_HAND + torch.tensor([[0.0], [3.0]])
    assert TensorRows(shifted).logprob([2]) == pytest.approx([math.log(5 / 8)])
    assert TensorRows(shifted).logprob([2, 2]) == pytest.approx([math.log(5 / 8), math.log(2 / 8)])
    assert TensorRows(BY_HAND).logprob([]) == []


@pytest.mark.parametrize("reading", ["argmax", "logprob of nothing"])
def test_a_tie_goes_to_the_first_index(reading: str) -> None:
    rows = TensorRows(torch.tensor([[0.0, 3.0, 3.0, 3.0], [2.0, 2.0, 1.0, 2.0]]))
    reading_functions()[reading](rows)
    assert rows.argmax() == [1, 0]


@pytest.mark.parametrize("reading", reading_functions())
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_scores_that_are_not_finite_stop_the_run(reading: str, broken: float) -> None:
    rows = TensorRows(torch.tensor([[0.0, 1.0], [0.0, broken]]))
    with pytest.raises(RunError, match=r"row 1 has no finite best score"):
        reading_functions()[reading](rows)


def test_a_row_in_which_every_token_is_forbidden_stops_the_run() -> None:
    with pytest.raises(RunError, match=r"row 0"):
        TensorRows(torch.full((1, 3), -math.inf)).argmax()


def test_a_forbidden_token_is_no_error_and_has_no_probability() -> None:
    rows = TensorRows(torch.tensor([[0.0, -math.inf, 0.0]]))
    assert rows.logprob([1]) == [-math.inf]
    assert rows.max_prob() == pytest.approx([0.5])


@pytest.mark.parametrize("reading", reading_functions())
def test_every_reading_is_one_transfer_for_all_rows(reading: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transfers = count_transfers(monkeypatch)
    reading_functions()[reading](TensorRows(torch.randn(2, 5)))
    assert transfers == {"tolist": 1}


def test_what_a_hand_over_reads_is_one_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, transfers = TensorRows(BY_HAND), count_transfers(monkeypatch)
    rows.logprob([0])
    assert rows.argmax() == [2, 0]
    assert rows.max_prob() == pytest.approx([5 / 8, 5 / 8])
    assert transfers == {"tolist": 1}


def test_what_a_draft_step_reads_is_one_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    row, transfers = TensorRows(BY_HAND).last(), count_transfers(monkeypatch)
    assert row.max_prob() == pytest.approx([5 / 8])
    assert row.argmax() == [0]
    assert transfers == {"tolist": 1}


def test_rows_are_projected_at_the_first_reading_once_and_only_where_they_are_read() -> None:
    projected: list[int] = []

    def project(states: Tensor) -> Tensor:
        projected.append(states.shape[0])
        return 2 * states

    rows = TensorRows(BY_HAND / 2, project)
    last = rows.last()
    assert (len(rows), len(last), projected) == (2, 1, [])
    assert last.argmax() == [0]
    assert last.logprob([2]) == pytest.approx([math.log(2 / 8)])
    assert projected == [1]
    assert rows.max_prob() == pytest.approx([5 / 8, 5 / 8])
    assert projected == [1, 2]


def test_the_last_of_one_row_is_the_row_with_what_it_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    row = TensorRows(BY_HAND[:1])
    row.max_prob()
    transfers = count_transfers(monkeypatch)
    assert row.last().argmax() == [2]
    assert not transfers


def count_transfers(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each way from a tensor to the host is taken from now on."""
    taken: Counter[str] = Counter()

    def counted(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def call(tensor: Tensor, *arguments: object, **named: object) -> object:
            taken[name] += 1
            return original(tensor, *arguments, **named)

        return call

    for name in ("tolist", "item", "cpu", "numpy", "__float__", "__int__", "__bool__", "__index__"):
        monkeypatch.setattr(torch.Tensor, name, counted(name, getattr(torch.Tensor, name)))
    return taken
