"""Batches laid out before training: which texts an epoch shows, how much fits, what lies together."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bild_bench.errors import UsageError
from bild_bench.training.batches import IGNORED, Batches, BatchSize, grouped, training_batches, validation_batches
from bild_bench.training.texts import Encoded

LENGTHS = st.tuples(st.integers(1, 30), st.integers(1, 30))
PARTS = st.lists(st.lists(LENGTHS, min_size=1, max_size=25), min_size=1, max_size=3)
SIZES = st.one_of(
    st.builds(BatchSize, st.integers(1, 9), st.none()), st.builds(BatchSize, st.none(), st.integers(20, 200))
)


def texts_of(lengths: list[tuple[int, int]]) -> list[Encoded]:
    return [Encoded((7,) * source, (8,) * target) for source, target in lengths]


def flat(batches: list[np.ndarray]) -> list[int]:
    return [int(row) for batch in batches for row in batch]


def test_epochs_that_make_too_many_batches_are_refused_before_they_are_laid_out() -> None:
    with pytest.raises(UsageError) as caught:
        training_batches([(texts_of([(3, 3)] * 40), 1.0)], BatchSize(4, None), 1e9, None, 0)
    said = "--epochs: 1000000000.0: makes about 10,000,000,000 batches, and at most 2,000,000 are allowed; ask for"
    assert str(caught.value).startswith(said)


@given(PARTS, SIZES, st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_an_epoch_shows_every_text_once(
    parts: list[list[tuple[int, int]]], size: BatchSize, seed: int, epochs: int
) -> None:
    weighted = [(texts_of(lengths), 1.0) for lengths in parts]
    batches = training_batches(weighted, size, float(epochs), None, seed)
    total = sum(map(len, parts))
    assert Counter(flat(batches)) == dict.fromkeys(range(total), epochs)
    # Epoch by epoch, not only in the end.
    shown = flat(batches)
    for epoch in range(epochs):
        assert sorted(shown[epoch * total : (epoch + 1) * total]) == list(range(total))


@given(PARTS, SIZES, st.integers(0, 99))
def test_no_batch_is_larger_than_asked_and_none_could_take_its_neighbour_in(
    parts: list[list[tuple[int, int]]], size: BatchSize, seed: int
) -> None:
    lengths = np.array([pair for part in parts for pair in part])
    batches = training_batches([(texts_of(part), 1.0) for part in parts], size, 1.0, None, seed)

    def tokens(rows: np.ndarray) -> int:
        return len(rows) * int(lengths[rows].max(axis=0).sum())

    for batch in batches:
        assert len(batch)
        assert size.texts is None or len(batch) <= size.texts
        # A text that is too large by itself makes a batch of its own.
        assert size.tokens is None or len(batch) == 1 or tokens(batch) <= size.tokens
    in_order = sorted(batches, key=lambda rows: (lengths[rows[0]].tolist(), lengths[rows[-1]].tolist(), -len(rows)))
    for first, second in pairwise(in_order):
        joined = np.append(first, second[0])
        fits = len(joined) <= size.texts if size.texts is not None else tokens(joined) <= (size.tokens or 0)
        assert not fits


@given(PARTS, SIZES, st.integers(0, 99))
def test_texts_of_like_length_lie_together(parts: list[list[tuple[int, int]]], size: BatchSize, seed: int) -> None:
    lengths = [pair for part in parts for pair in part]
    batches = training_batches([(texts_of(part), 1.0) for part in parts], size, 1.0, None, seed)
    spans = sorted((min(lengths[row] for row in batch), max(lengths[row] for row in batch)) for batch in batches)
    for (_, longest), (shortest, _) in pairwise(spans):
        assert longest <= shortest


def test_the_order_is_random_but_the_same_for_the_same_seed() -> None:
    texts = texts_of([(1 + row % 10, 3) for row in range(60)])

    def made(seed: int) -> list[list[int]]:
        return [batch.tolist() for batch in training_batches([(texts, 1.0)], BatchSize(4, None), 2.0, None, seed)]

    assert made(5) == made(5)
    assert made(5) != made(6)
    first, second = made(5)[:15], made(5)[15:]
    assert first != second
    widths = [len(texts[batch[0]].source) for batch in first]
    assert widths != sorted(widths)


@pytest.mark.parametrize("seed", range(5))
def test_half_the_weight_shows_one_half_now_and_the_other_next(seed: int) -> None:
    parts = [(texts_of([(4, 4)] * 10), 1.0), (texts_of([(4, 4)] * 20), 0.5)]
    shown = flat(training_batches(parts, BatchSize(5, None), 4.0, None, seed))
    halves = [sorted(row for row in shown[start : start + 20] if row >= 10) for start in (0, 20, 40, 60)]
    assert [len(half) for half in halves] == [10] * 4
    assert sorted(halves[0] + halves[1]) == sorted(halves[2] + halves[3]) == list(range(10, 30))
    # Each round is drawn anew.
    assert halves[0] != halves[2]
    for start in (0, 20, 40, 60):
        assert sorted(row for row in shown[start : start + 20] if row < 10) == list(range(10))


def test_a_weight_of_two_shows_a_text_twice_an_epoch_and_a_tiny_one_at_least_one_text() -> None:
    parts = [(texts_of([(4, 4)] * 3), 2.0), (texts_of([(4, 4)] * 5), 0.01)]
    shown = Counter(flat(training_batches(parts, BatchSize(4, None), 1.0, None, 0)))
    assert [shown[row] for row in range(3)] == [2, 2, 2]
    assert sum(shown[row] for row in range(3, 8)) == 1


@given(st.integers(1, 40), st.integers(1, 9))
def test_a_count_of_batches_is_the_start_of_the_endless_run(count: int, texts: int) -> None:
    parts = [(texts_of([(1 + row, 2) for row in range(texts)]), 1.0)]
    size = BatchSize(2, None)
    counted = training_batches(parts, size, None, count, 3)
    assert len(counted) == count
    epochs = training_batches(parts, size, float(count), None, 3)
    assert [batch.tolist() for batch in counted] == [batch.tolist() for batch in epochs[:count]]


@pytest.mark.parametrize(("epochs", "expected"), [(0.5, 5), (1.0, 10), (1.3, 13), (2.5, 25), (0.001, 1)])
def test_a_fraction_of_an_epoch_is_that_share_of_its_batches(epochs: float, expected: int) -> None:
    parts = [(texts_of([(3, 3)] * 40), 1.0)]
    batches = training_batches(parts, BatchSize(4, None), epochs, None, 0)
    assert len(batches) == expected
    whole = training_batches(parts, BatchSize(4, None), 3.0, None, 0)
    assert [batch.tolist() for batch in batches] == [batch.tolist() for batch in whole[:expected]]


@given(st.lists(LENGTHS, min_size=1, max_size=30), SIZES)
def test_validation_sees_every_text_once(lengths: list[tuple[int, int]], size: BatchSize) -> None:
    assert sorted(flat(validation_batches(texts_of(lengths), size))) == list(range(len(lengths)))


def test_equal_lengths_are_mixed_by_chance() -> None:
    lengths = np.full((30, 2), 4)
    first, second = (
        grouped(np.arange(30), lengths, BatchSize(5, None), np.random.default_rng(seed)) for seed in (0, 1)
    )
    assert {frozenset(batch.tolist()) for batch in first} != {frozenset(batch.tolist()) for batch in second}


def test_a_batch_as_tensors() -> None:
    texts = [Encoded((5, 6, 1), (7, 1)), Encoded((8, 1), (9, 10, 11, 1))]
    batch = Batches(texts, [np.array([1, 0])], pad=0, start=2)[0]
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "input_ids": [[8, 1, 0], [5, 6, 1]],
        "attention_mask": [[1, 1, 0], [1, 1, 1]],
        # Each token is foretold from those before it; the first from the start token.
        "decoder_input_ids": [[2, 9, 10, 11], [2, 7, 0, 0]],
        "labels": [[9, 10, 11, 1], [7, 1, IGNORED, IGNORED]],
    }


def test_what_was_seen_is_counted_without_padding() -> None:
    texts = [Encoded((5, 6, 1), (7, 1)), Encoded((8, 1), (9, 10, 11, 1))]
    batches = Batches(texts, [np.array([1, 0]), np.array([0]), np.array([1])], pad=0, start=0)
    assert batches.seen(2) == {"texts": 3, "source_tokens": 8, "target_tokens": 8}
    assert len(batches) == 3
