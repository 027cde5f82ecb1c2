"""Whether a metric can read the script that references are written in."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from bild_bench.measure.metrics import USUAL, is_bleu, tokenizer_of

_TEXTS, _CHARACTERS = 200, 500
_SHARE = 0.25
# Scripts by the first word of their letters' Unicode names, and sacreBLEU's tokenizers that know them.
_WITHOUT_SPACES = {
    "CJK": ("Chinese", "zh"),
    "HIRAGANA": ("Japanese", "ja-mecab"),
    "KATAKANA": ("Japanese", "ja-mecab"),
    "HANGUL": ("Korean", "ko-mecab"),
    **{name.upper(): (name, "flores200") for name in ("Thai", "Lao", "Khmer", "Myanmar", "Tibetan")},
}
# Japanese text has Han characters too, at times more than kana; Chinese text has hardly any kana.
_LEAST_KANA = 0.05
_ORDER = ("Japanese", "Korean", "Chinese", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
_FIT_FOR_ALL = ("char", "flores200")


def script_warning(metric: str, references: Iterable[Sequence[str]]) -> str | None:
    """One line where the metric cannot read what the references are written in; None where it can.

    Args:
        metric: see `metrics`.
        references: each text's; the first 200 are looked at.
    """
    letters = Counter(_scripts(references))
    total = sum(letters.values())
    if not total:
        return None
    if not is_bleu(metric):
        foreign = 1 - letters["LATIN"] / total
        if foreign <= _SHARE:
            return None
        return (
            f"{foreign:.0%} of the references' letters are not Latin, and rouge-score reads only a-z and 0-9:"
            f" its scores mean nothing; use --metric bleu{_advice(_language(letters, total))}"
        )
    tokenizer, language = tokenizer_of(metric), _language(letters, total)
    if language is None:
        return None
    advised = _fit_for(language)
    if tokenizer == advised or tokenizer in _FIT_FOR_ALL:
        return None
    usual = " (BLEU's usual one)" if tokenizer == USUAL else ""
    return (
        f"the references are written in {language} script, whose words the tokenizer {tokenizer}{usual} does not tell"
        f" apart: scores mean little; use --bleu-tokenize {advised} or char, and chrF"
    )


def _fit_for(language: str) -> str:
    return next(fit for name, fit in _WITHOUT_SPACES.values() if name == language)


def _advice(language: str | None) -> str:
    return "" if language is None else f" --bleu-tokenize {_fit_for(language)}"


def _language(letters: Counter[str], total: int) -> str | None:
    shares: Counter[str] = Counter()
    for script, (language, _) in _WITHOUT_SPACES.items():
        shares[language] += letters[script]
    if shares["Japanese"] > _LEAST_KANA * (shares["Japanese"] + shares["Chinese"]):
        shares["Japanese"] += shares["Chinese"]
    found = [language for language in _ORDER if shares[language] / total > _SHARE]
    return found[0] if found else None


def _scripts(references: Iterable[Sequence[str]]) -> Iterable[str]:
    for texts in islice(references, _TEXTS):
        for text in texts:
            for character in text[:_CHARACTERS]:
                if character.isalpha():
                    yield unicodedata.name(character, "UNKNOWN").partition(" ")[0]
