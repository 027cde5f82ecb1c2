"""The test of quality differences: by hand, against its own interval, and where sacreBLEU's contradicts an interval."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from bild_bench.errors import UsageError
from bild_bench.measure.intervals import centred_test
from bild_bench.measure.quality import METRICS, Metric, text_statistics
from bild_bench.measure.quality_intervals import PairedDraw, paired_quality_difference, paired_quality_test
from bild_bench.report.significance import quality_significance

# Of these sacreBLEU 2.6 says p = 0.003, and the interval of the difference holds 0: base, point, references.
FOUR = (
    [
        "dog big red on a on the lay",
        "rug the big sat sat sat cat mat",
        "the in a a the dog sat lay",
        "in the rug red a on in big",
    ],
    [
        "lay dog rug on lay lay lay on",
        "a big in sat sat cat lay the",
        "the mat a a the dog sat lay",
        "in cat mat mat lay lay in big",
    ],
    [
        "dog big cat on a on the lay",
        "on the big sat sat sat cat mat",
        "the mat a a the dog sat lay",
        "in the rug red big on in big",
    ],
)

words = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat"]), max_size=8).map(" ".join)
corpora = st.lists(st.tuples(words, words, st.lists(words, min_size=1, max_size=2)), min_size=2, max_size=8)


def one_draw(base: list[str], other: list[str], references: list[list[str]]) -> list[PairedDraw]:
    return [(range(len(base)), base, other, references)]


def test_three_texts_worked_by_hand() -> None:
    # Differences of 40, 40 and 10: 30 on average. A resample's is 10, 20, 30 or 40, with chances of 1, 6, 12 and 8 of
    # 27: none is 30 away; 1 of 27 is 20 away, less than 5 %, and 14 of 27 are 10 away, so the interval reaches 10.
    counts = np.array([[37, 10.0], [222, 20.0], [445, 30.0], [296, 40.0]])
    found = centred_test(30.0, np.repeat(counts[:, 1], counts[:, 0].astype(int)), texts=3, level=0.95)
    assert (found.value, found.low, found.high) == (30.0, 20.0, 40.0)
    assert found.p_value == pytest.approx(1 / 1001)


def test_two_texts_of_which_one_gains_are_no_evidence() -> None:
    # A resample gains 0, 25 or 50 with chances of 1, 2 and 1 of 4: half of them are 25 away, as far as 25 is from 0.
    found = paired_quality_test("rougeL", one_draw(["x y", "a c"], ["x y", "a b"], [["a b"]] * 2), seed=0)
    assert (found.value, found.low, found.high) == (25.0, 0.0, 50.0)
    assert found.p_value == pytest.approx(0.5, abs=0.05)


@given(corpora, st.sampled_from(METRICS), st.integers(0, 3))
@settings(deadline=None, max_examples=150)
def test_p_is_below_5_per_cent_exactly_where_the_interval_excludes_0(
    corpus: list[tuple[str, str, list[str]]], metric: Metric, seed: int
) -> None:
    base, other, references = (list(column) for column in zip(*corpus, strict=True))
    found = paired_quality_test(metric, one_draw(base, other, references), seed=seed, resamples=200)
    assert found.p_value is not None
    assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)
    assert found.low <= found.value <= found.high
    back = paired_quality_test(metric, one_draw(other, base, references), seed=seed, resamples=200)
    assert (back.value, back.p_value) == (pytest.approx(-found.value), found.p_value)


@given(st.floats(-50, 50), st.floats(0.1, 60), st.integers(20, 1200), st.sampled_from([0.9, 0.95, 0.99]))
@settings(deadline=None)
def test_interval_and_p_agree_at_every_number_of_resamples(
    value: float, spread: float, resamples: int, level: float
) -> None:
    resampled = np.random.default_rng(0).normal(value, spread, resamples)
    found = centred_test(value, resampled, texts=30, level=level)
    if found.p_value is None:
        assert (resamples + 1) * (1 - level) <= 1 + 1e-9  # not even the least p is that small
    else:
        assert (found.p_value < 1 - level) == (found.low > 0 or found.high < 0)


@pytest.mark.parametrize("metric", METRICS)
def test_other_texts_with_equal_statistics_differ_by_nothing_with_p_1(metric: Metric) -> None:
    references = [["a cat sat on the mat"], ["a dog lay on a rug"], ["the end"]]
    base = ["one cat sat on the mat", "one dog lay on a rug", "the end"]
    other = ["two cat sat on the mat", "two dog lay on a rug", "the end"]
    assert (text_statistics(metric, base, references) == text_statistics(metric, other, references)).all()

    found = paired_quality_test(metric, one_draw(base, other, references), seed=0)

    assert (found.value, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_equal_distances_count_as_equal_whatever_their_last_bits() -> None:
    # Text b loses 300/7 and text a nothing: half of the resamples are as far from the difference as that is from 0.
    lost = 300 / 7
    found = centred_test(-lost / 2, np.array([0.0, -lost, -lost / 2, -lost / 2 + 1e-14] * 50), texts=2, level=0.95)
    assert found.p_value == pytest.approx(101 / 201)
    assert (found.low, found.high) == (pytest.approx(-lost), 0.0)


def test_a_difference_of_zero_between_texts_that_differ_both_ways_has_p_1() -> None:
    found = paired_quality_test("rougeL", one_draw(["a b", "x"], ["x", "a b"], [["a b"]] * 2), seed=0)
    assert (found.value, found.p_value) == (0.0, 1.0)
    assert (found.low, found.high) == (-100.0, 100.0)


def test_bleus_p_does_not_contradict_its_interval_where_sacrebleus_does() -> None:
    base, other, references = FOUR
    _, scores = PairedTest([("b", base), ("o", other)], {"BLEU": BLEU()}, [references], "bs", 1000)()
    theirs = scores["BLEU"][1]
    assert not isinstance(theirs, str)
    assert theirs.p_value is not None
    assert theirs.p_value < 0.01

    found = paired_quality_test("bleu", one_draw(base, other, [[text] for text in references]), seed=0)

    assert found.value == pytest.approx(-31.58, abs=0.01)
    assert found.low < 0 < found.high
    assert found.p_value is not None
    assert found.p_value > 0.05


def test_draws_are_averaged_and_a_text_keeps_all_of_its_draws() -> None:
    # Draw by draw the texts gain (100, 0) and (0, 100): 50 on average for either text, whichever are drawn.
    references = [["a"], ["a"]]
    draws: list[PairedDraw] = [
        (["t", "u"], ["x", "x"], ["a", "x"], references),
        (["t", "u"], ["x", "x"], ["x", "a"], references),
    ]
    found = paired_quality_test("rougeL", draws, seed=0)
    assert (found.value, found.low, found.high) == (50.0, 50.0, 50.0)


def test_one_text_or_a_handful_of_resamples_allows_no_statement() -> None:
    single = paired_quality_test("bleu", one_draw(["a"], ["b"], [["b"]]), seed=0)
    few = paired_quality_test("rougeL", one_draw(["a", "b"], ["b", "b"], [["b"]] * 2), seed=0, resamples=18)
    for found in (single, few):
        assert math.isnan(found.low)
        assert found.p_value is None
    with pytest.raises(UsageError, match="level"):
        centred_test(1.0, np.ones(100), texts=5, level=1.0)


def _rows(texts: list[str], process: str = "p") -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"text_id": str(n), "draw": 0, "status": "ok", "output_text": text, "of": process}
            for n, text in enumerate(texts)
        ]
    ).assign(references=[["a b"]] * len(texts))


def test_a_baseline_that_was_decoded_again_counts_once() -> None:
    base, point, ids = _rows(["x", "x", "a b"]), _rows(["a b", "x", "x"]), ["0", "1", "2"]
    again = pd.concat([base, _rows(["x"], "later")])

    once, twice = (quality_significance("rougeL", 0, rows, point, ids) for rows in (base, again))

    assert once is not None
    assert once == twice
    assert (once.texts, once.difference) == (3, 0.0)


def test_the_old_form_gives_the_same_difference_and_interval() -> None:
    base, other, references = FOUR
    lists = [[text] for text in references]
    found = paired_quality_test("bleu", one_draw(base, other, lists), seed=3)
    assert paired_quality_difference("bleu", base, other, lists, seed=3) == (found.value, found.low, found.high)
