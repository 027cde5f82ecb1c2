from __future__ import annotations

import math

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from bild_bench.errors import DataError, UsageError
from bild_bench.measure.quality import (
    METRICS,
    score,
    sentences_on_lines,
    text_statistics,
)
from bild_bench.measure.quality_intervals import paired_quality_difference, quality_interval

# Of one shape with the example in sacreBLEU's own README, which prints BLEU = 48.53 for it: only the words are others,
# one for one, and BLEU does not care what words mean.
OUTPUT = ["The goat bit the baker.", "It wasn't puzzling.", "The baker had just bitten him."]
REFERENCES = [
    ["The goat bit the baker.", "The goat had bit the baker."],
    ["It was not alarming.", "No one was hungry."],
    ["The baker bit him first.", "The baker had bitten the goat."],
]

words = st.lists(st.sampled_from(["the", "cat", "sat", "on", "Größe", "naïve", ".", "mat"]), max_size=12).map(" ".join)
corpora = st.lists(
    st.tuples(words, words, st.lists(words, min_size=1, max_size=3)),
    min_size=1,
    max_size=6,
)


def test_bleu_of_the_readme_example():
    result = score("bleu", OUTPUT, REFERENCES)
    assert result.value == pytest.approx(48.53, abs=0.005)
    assert result.signature == f"nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


def test_bleu_worked_by_hand():
    # Matched n-grams: 5 of 6, 3 of 5, 2 of 4, 1 of 3; no brevity penalty. Their product is 1/12.
    result = score("bleu", ["the cat sat on the mat"], [["the cat sat on a mat"]])
    assert result.value == pytest.approx(100 * (1 / 12) ** 0.25)


def test_bleu_of_a_short_text_pays_the_brevity_penalty():
    # All n-grams match; 5 tokens for a reference of 8.
    result = score("bleu", ["a b c d e"], [["a b c d e f g h"]])
    assert result.value == pytest.approx(100 * math.exp(1 - 8 / 5))


def test_the_number_of_references_may_vary():
    outputs, references = (
        ["the cat sat on a mat", "dogs bark at night"],
        [["the cat sat on the mat"], ["dogs", "a dog"]],
    )
    streams = [["the cat sat on the mat", "dogs"], [None, "a dog"]]
    result = score("bleu", outputs, references)
    assert result.value == sacrebleu.corpus_bleu(outputs, streams).score
    assert result.value > 0
    assert result.signature.startswith("nrefs:var|")
    assert "|nrefs:var|" in score("rougeL", outputs, references).signature


@given(corpora)
@settings(deadline=None)
def test_text_statistics_add_up_to_the_corpus_score(corpus):
    base, outputs, references = (list(column) for column in zip(*corpus, strict=True))
    for metric in METRICS:
        difference, _, _ = paired_quality_difference(metric, base, outputs, references, seed=0, resamples=1)
        expected = score(metric, outputs, references).value - score(metric, base, references).value
        assert difference == pytest.approx(expected, abs=1e-9)


def test_bleu_statistics_are_lengths_and_ngram_counts():
    rows = text_statistics("bleu", ["the cat sat on the mat", ""], [["the cat sat on a mat"], ["a b", "a b c"]])
    assert rows.tolist() == [[6, 6, 5, 3, 2, 1, 6, 5, 4, 3], [0, 2, 0, 0, 0, 0, 0, 0, 0, 0]]


def test_rouge_l_worked_by_hand():
    # Longest common subsequence "the cat": precision 2/3, recall 2/4, F1 4/7.
    assert score("rougeL", ["the cat sat"], [["the cat lay down"]]).value == pytest.approx(100 * 4 / 7)


def test_rouge_takes_the_best_reference_and_the_mean_over_texts():
    references = [["something else", "the cat lay down"], ["no word of it"]]
    assert text_statistics("rougeL", ["the cat sat", "xyz"], references).tolist() == [[pytest.approx(4 / 7)], [0.0]]
    assert score("rougeL", ["the cat sat", "xyz"], references).value == pytest.approx(100 * 2 / 7)


def test_rouge_uses_the_stemmer():
    assert score("rougeL", ["jumping horses"], [["jumped horse"]]).value == 100


def test_rouge_lsum_does_not_mind_the_order_of_sentences():
    output, reference = ["Dogs bark loudly. The cat sat."], [["The cat sat. Dogs bark loudly."]]
    assert score("rougeL", output, reference).value == 50
    assert score("rougeLsum", output, reference).value == 100


def test_rouge_lsum_keeps_the_lines_of_a_text():
    # As lines, 3 of the first 6 words are in order, and both of the last 2: F1 5/8. Split into sentences all 8 match.
    output = ["Dogs bark loudly. The cat sat.\nNothing more"]
    assert score("rougeLsum", output, [["The cat sat. Dogs bark loudly.\nNothing more"]]).value == 62.5


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. Smith went to Washington D.C. on Jan. 5.", "He met Sen. John Doe at 3 p.m. in the U.S. Capitol."],
        ["Prices rose 3.5 percent to $1.2 million.", "The U.K. government declined to comment."],
        ['"We will see!" said Dr. Brown.', "He said no more."],
        ["usain bolt wins third gold .", "eighth gold at the championships for bolt .", "jamaica double up ."],
        ["the u.s. president met mr. smith at 5 p.m. on monday .", "he said he was happy ."],
        ["What happened?", "Nobody knows!", "He waited... and waited."],
        ["One sentence only, without an end"],
    ],
)
def test_sentences_of_news_and_of_t5(sentences):
    assert sentences_on_lines(" ".join(sentences)).split("\n") == sentences


@pytest.mark.parametrize(("text", "lines"), [("", ""), (" \n ", ""), ("A. B c\nD. E f\n", "A. B c\nD. E f")])
def test_lines_of_a_text_are_kept(text, lines):
    assert sentences_on_lines(text) == lines


def test_signatures_name_what_was_done():
    lsum = score("rougeLsum", ["a b"], [["a b"]])
    assert lsum.metric == "rougeLsum"
    assert "|stemmer:yes|split:sentencex " in lsum.signature
    assert lsum.signature.endswith("|agg:mean-f1")
    assert "|split:none|" in score("rougeL", ["a b"], [["a b"]]).signature


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_text_counts_as_a_text_that_scores_nothing(metric):
    full = "the quick brown fox jumps"
    assert score(metric, [""], [[full]]).value == 0
    assert score(metric, [""], [[""]]).value == 0
    assert 0 < score(metric, [full, ""], [[full], [full]]).value < 100
    assert score(metric, [full], [[full]]).value == pytest.approx(100)


def test_umlauts_matter_to_bleu_and_are_lost_on_rouge():
    reference = [["die Größe der Straße ist für uns schön"]]
    assert score("bleu", reference[0], reference).value == pytest.approx(100)
    assert score("bleu", ["die Grosse der Strasse ist fur uns schon"], reference).value < 50
    assert score("rougeL", ["gr e"], [["Größe"]]).value == 100


@pytest.mark.parametrize("metric", METRICS)
def test_interval_is_the_same_for_the_same_seed_and_brackets_the_score(metric):
    low, high = quality_interval(metric, OUTPUT, REFERENCES, seed=1)
    assert (low, high) == quality_interval(metric, OUTPUT, REFERENCES, seed=1)
    assert low < score(metric, OUTPUT, REFERENCES).value < high


def test_interval_of_two_texts_worked_by_hand():
    assert quality_interval("rougeL", ["a b", "x"], [["a b"], ["y"]], seed=0) == (0, 100)
    assert quality_interval("rougeL", ["a b", "x"], [["a b"], ["y"]], seed=0, level=0.4) == (50, 50)


def test_bleu_interval_agrees_with_sacrebleus_own_bootstrap():
    outputs, references = OUTPUT * 20, REFERENCES * 20
    streams = [list(stream) for stream in zip(*references, strict=True)]
    theirs = BLEU().corpus_score(outputs, streams, n_bootstrap=1000)
    low, high = quality_interval("bleu", outputs, references, seed=0)
    assert (high - low) / 2 == pytest.approx(theirs._ci, rel=0.15)
    assert (low + high) / 2 == pytest.approx(theirs._mean, rel=0.03)


def test_one_text_has_no_interval():
    assert all(map(math.isnan, quality_interval("bleu", OUTPUT[:1], REFERENCES[:1], seed=0)))
    difference, low, high = paired_quality_difference("rougeL", ["a"], ["b"], [["b"]], seed=0)
    assert difference == 100
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize("metric", METRICS)
def test_the_same_texts_differ_by_exactly_nothing(metric):
    args = (metric, OUTPUT, OUTPUT, REFERENCES)
    assert paired_quality_difference(*args, seed=0) == (0, 0, 0)


def test_difference_is_positive_where_the_point_is_better_than_the_baseline():
    references = [["a b c d"], ["e f g h"], ["i j k l"]]
    better = paired_quality_difference("rougeL", ["x", "y", "z"], ["a b c d", "e f g h", "x"], references, seed=0)
    assert better[0] == pytest.approx(200 / 3)
    worse = paired_quality_difference("rougeL", ["a b c d", "e f g h", "x"], ["x", "y", "z"], references, seed=0)
    assert worse == pytest.approx((-better[0], -better[2], -better[1]))


def test_difference_is_paired_by_text():
    # The baseline's texts score 0 or 50, the point's 50 more on each: both vary, their difference does not.
    base, outputs, references = ["x y", "a c"] * 5, ["a c", "a b"] * 5, [["a b"]] * 10
    low, high = quality_interval("rougeL", base, references, seed=0)
    assert high - low > 20
    assert paired_quality_difference("rougeL", base, outputs, references, seed=0) == (50, 50, 50)


@pytest.mark.parametrize(
    ("outputs", "references", "named"),
    [
        ([], [], "no texts"),
        (["a"], [["a"], ["b"]], "hypotheses"),
        (["a"], ["a"], "list of texts"),
        (["a"], [[]], "without a reference"),
        ([None], [["a"]], "must be a text"),
    ],
)
@pytest.mark.parametrize("metric", METRICS)
def test_corpora_that_cannot_be_scored_are_refused(metric, outputs, references, named):
    for measure in (score, text_statistics):
        with pytest.raises(DataError, match=named):
            measure(metric, outputs, references)


def test_an_unknown_metric_is_refused_with_those_that_are_known():
    with pytest.raises(UsageError, match=r"bleu, rougeL, rougeLsum.*'rougeL'"):
        score("rouge-l", ["a"], [["a"]])
