"""Quality of generated texts against references: corpus BLEU, chrF, ROUGE-L and ROUGE-Lsum.

BLEU and chrF are sacreBLEU's (Post 2018, A Call for Clarity in Reporting BLEU Scores) and ROUGE is rouge-score's (Lin
2004, ROUGE: A Package for Automatic Evaluation of Summaries). Ours is that a score never travels without the signature
that says how it was made, and each text's own statistics, from which intervals are made (`measure.quality_intervals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from bild_bench.errors import DataError, unknown_name
from bild_bench.measure.metrics import TOKENIZERS, is_bleu, tokenizer_of

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

    from bild_bench.measure.intervals import Floats

# BLEU by another tokenizer than the usual one has a name of its own; see `measure.metrics`.
Metric = Literal[
    "bleu",
    "rougeL",
    "rougeLsum",
    "bleu-intl",
    "bleu-zh",
    "bleu-ja-mecab",
    "bleu-ko-mecab",
    "bleu-flores200",
    "bleu-char",
]
METRICS: tuple[Metric, ...] = ("bleu", "rougeL", "rougeLsum")

# Points of a sweep share most of their texts with the baseline: a text is scored once for all of them.
_TEXTS_REMEMBERED = 65_536


@dataclass(frozen=True)
class Score:
    """A corpus score in points (0 to 100) and the signature of how it was computed."""

    metric: Metric | Literal["chrf"]
    value: float
    signature: str


def score(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """The corpus score of hypotheses against references.

    BLEU pools its n-gram counts over the corpus. ROUGE is the mean over texts of F1 (the best reference of each text),
    with the stemmer. ROUGE-Lsum has one sentence per line: lines that a text already has are kept, else it is split.
    rouge-score reads only a-z and 0-9, so ROUGE is for English: an umlaut splits a word, other scripts score 0.

    Args:
        metric: "bleu", "rougeL" or "rougeLsum", or BLEU by another of sacreBLEU's tokenizers, such as "bleu-zh".
        hypotheses: one text each; an empty text counts as a text.
        references: for each hypothesis one or more texts; their number may vary.

    Raises:
        DataError: no texts, unequal lengths, something that is not a text, a text without references, or a bare
            string where its references belong.
        UsageError: another metric.
    """
    _check(metric, hypotheses, references)
    if is_bleu(metric):
        return _corpus_bleu(metric, hypotheses, references)
    value = 100.0 * float(text_statistics(metric, hypotheses, references)[:, 0].mean())
    return Score(metric, value, _rouge_signature(metric, references))


def chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """sacreBLEU's chrF2 of the corpus (Popović 2015, chrF: character n-gram F-score for automatic MT evaluation).

    Raises:
        DataError: as `score`.
    """
    from sacrebleu.metrics.chrf import CHRF

    _check("bleu", hypotheses, references)
    metric = CHRF()
    value = metric.corpus_score(list(hypotheses), _streams(references)).score
    return Score("chrf", float(value), str(metric.get_signature()))


def text_statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
    """Each text's additive statistics, shape (texts, columns): their column sums determine the corpus score.

    BLEU has 10 columns: the hypothesis's length and the closest reference's in tokens, then matched and total n-grams
    of orders 1 to 4. ROUGE has one: F1 in [0, 1], which is also the text's own score.

    Raises:
        DataError, UsageError: as `score`.
    """
    import numpy as np

    _check(metric, hypotheses, references)
    of_text = _bleu_counts if is_bleu(metric) else _rouge_f1
    rows = [of_text(metric, hyp, tuple(refs)) for hyp, refs in zip(hypotheses, references, strict=True)]
    return np.asarray(rows, dtype=np.float64)


def sentences_on_lines(text: str) -> str:
    """The text with one sentence per line. Lines that it has already are kept: CNN/DailyMail's highlights do."""
    import sentencex

    text = text.strip()
    if "\n" in text:
        return text
    return "\n".join(sentence.strip() for sentence in sentencex.segment("en", text) if sentence.strip())


@lru_cache(maxsize=len(TOKENIZERS))
def bleu_of(metric: Metric) -> BLEU:
    """sacreBLEU's BLEU by the metric's tokenizer; to make one takes as long as a score."""
    return _new_bleu(metric)


def _new_bleu(metric: Metric) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer_of(metric))


def _corpus_bleu(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    # Its signature tells of the last corpus, so each has its own.
    bleu = _new_bleu(metric)
    value = bleu.corpus_score(list(hypotheses), _streams(references)).score
    return Score(metric, float(value), str(bleu.get_signature()))


def _streams(references: Sequence[Sequence[str]]) -> list[Any]:
    """Reference streams as sacreBLEU wants them, each as long as the corpus; None where a text has fewer references."""
    most = max(len(refs) for refs in references)
    return [[refs[i] if i < len(refs) else None for refs in references] for i in range(most)]


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _bleu_counts(metric: Metric, hypothesis: str, references: tuple[str, ...]) -> tuple[float, ...]:
    counted = bleu_of(metric).corpus_score([hypothesis], [[reference] for reference in references])
    return (counted.sys_len, counted.ref_len, *counted.counts, *counted.totals)


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _rouge_f1(metric: Metric, hypothesis: str, references: tuple[str, ...]) -> tuple[float, ...]:
    from rouge_score.rouge_scorer import RougeScorer

    prepare = sentences_on_lines if metric == "rougeLsum" else str
    scorer = RougeScorer([metric], use_stemmer=True)
    best = scorer.score_multi([prepare(reference) for reference in references], prepare(hypothesis))
    return (float(best[metric].fmeasure),)


def _rouge_signature(metric: Metric, references: Sequence[Sequence[str]]) -> str:
    from importlib.metadata import version

    numbers = {len(refs) for refs in references}
    nrefs = str(numbers.pop()) if len(numbers) == 1 else "var"
    split = f"sentencex {version('sentencex')}" if metric == "rougeLsum" else "none"
    package = version("rouge-score")
    return f"{metric}|nrefs:{nrefs}|stemmer:yes|split:{split}|rouge-score:{package}|agg:mean-f1"


def _check(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if metric not in METRICS and not is_bleu(metric):
        raise unknown_name("metric", metric, METRICS)
    if len(hypotheses) == 0:
        raise DataError("hypotheses", 0, "no texts to score", "give at least one finished text")
    if len(hypotheses) != len(references):
        fix = "give one list of references for each hypothesis"
        raise DataError("references", len(references), f"lists, but there are {len(hypotheses)} hypotheses", fix)
    for index, (hypothesis, refs) in enumerate(zip(hypotheses, references, strict=True)):
        if not isinstance(hypothesis, str):
            raise DataError(f"hypotheses[{index}]", hypothesis, "must be a text", "leave out texts that failed")
        # A bare string would pass for a list of one-letter references: accepted by the libraries, and wrong.
        if isinstance(refs, str):
            raise DataError(f"references[{index}]", refs, "must be a list of texts", "put the text into a list")
        if len(refs) == 0:
            raise DataError(f"references[{index}]", "[]", "a text without a reference", "leave the text out")
