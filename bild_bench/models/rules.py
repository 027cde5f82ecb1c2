"""Rules in a checkpoint's generation_config: applied alike to both models, or refused by name.

A rule changes which tokens are possible at all (forced tokens, a minimum length, banned n-grams or ids), so it belongs
to the target's definition: the large model's rules hold for the small one too, and for every method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.generation import logits_process as library

from bild_bench.decoding.records import Limits
from bild_bench.decoding.session import Session
from bild_bench.errors import DataError
from bild_bench.models.rows import TensorRows

# Neutral values: with these a rule says nothing.
_REFUSED = {
    "guidance_scale": (None, 1.0),
    "watermarking_config": (None,),
    "force_words_ids": (None,),
    "stop_strings": (None,),
}
# Search and sampling settings concern how a text is found, not which texts are possible: ours come from the method.
_IGNORED = {
    "num_beams": (None, 1),
    "do_sample": (None, False),
    "length_penalty": (None, 1.0),
    "early_stopping": (None, False),
}


@dataclass(frozen=True)
class GenerationRules:
    """What was read from a generation_config.

    Args:
        applied: rule -> value, for the rules in force.
        ignored: search settings found there that our own decoding replaces, for the record.
    """

    applied: dict[str, Any]
    ignored: dict[str, Any]

    def wrap(self, session: Session, limits: Limits, source: Tensor) -> Session:
        """The session under these rules; itself where there are none. Source ids have shape [1, length]."""
        return RuledSession(session, self.processors(limits, source)) if self.applied else session

    def processors(self, limits: Limits, source: Tensor) -> Any:
        """The library's processors for these rules, in the order in which its own `generate` applies them."""
        made = (make(self.applied[rule], limits, source) for rule, make in _MADE_BY.items() if rule in self.applied)
        found = library.LogitsProcessorList(made)
        if "begin_suppress_tokens" in self.applied:
            begin = 2 if "forced_bos_token_id" in self.applied else 1
            suppressed = self.applied["begin_suppress_tokens"]
            found.append(library.SuppressTokensAtBeginLogitsProcessor(suppressed, begin))
        return found


def _ends(limits: Limits) -> list[int]:
    return sorted(limits.end_ids)


# In the library's order. A text begins with the start token, which counts as one.
_MADE_BY: dict[str, Callable[[Any, Limits, Tensor], Any]] = {
    "sequence_bias": lambda value, limits, source: library.SequenceBiasLogitsProcessor(value),
    "encoder_repetition_penalty": (
        lambda value, limits, source: library.EncoderRepetitionPenaltyLogitsProcessor(value, source)
    ),
    "repetition_penalty": lambda value, limits, source: library.RepetitionPenaltyLogitsProcessor(value),
    "no_repeat_ngram_size": lambda value, limits, source: library.NoRepeatNGramLogitsProcessor(value),
    "encoder_no_repeat_ngram_size": (
        lambda value, limits, source: library.EncoderNoRepeatNGramLogitsProcessor(value, source)
    ),
    "bad_words_ids": lambda value, limits, source: library.NoBadWordsLogitsProcessor(value, _ends(limits)),
    "min_length": lambda value, limits, source: library.MinLengthLogitsProcessor(value, _ends(limits)),
    "min_new_tokens": (
        lambda value, limits, source: library.MinNewTokensLengthLogitsProcessor(1, value, _ends(limits))
    ),
    "forced_bos_token_id": lambda value, limits, source: library.ForcedBOSTokenLogitsProcessor(value),
    "forced_eos_token_id": (
        lambda value, limits, source: library.ForcedEOSTokenLogitsProcessor(limits.max_tokens + 1, value)
    ),
    "exponential_decay_length_penalty": (
        lambda value, limits, source: library.ExponentialDecayLengthPenalty(value, _ends(limits), 1)
    ),
    "suppress_tokens": lambda value, limits, source: library.SuppressTokensLogitsProcessor(value),
}
APPLIED = (*_MADE_BY, "begin_suppress_tokens")


class RuledSession:
    """A session whose scores have gone through the rules; see `decoding.session.Session`."""

    def __init__(self, session: Session, processors: Any) -> None:
        self._session, self._processors = session, processors
        self._history: list[int] = []

    @property
    def length(self) -> int:
        return self._session.length

    @torch.inference_mode()
    def extend(self, tokens: Sequence[int]) -> TensorRows:
        before = self._session.length
        self._history[before:] = tokens
        rows: Any = self._session.extend(tokens)
        ruled = [
            self._processors(torch.tensor([self._history[: before + row + 1]], device=rows.logits.device), scores[None])
            for row, scores in enumerate(rows.logits)
        ]
        return TensorRows(torch.cat(ruled))

    def truncate(self, length: int) -> None:
        self._session.truncate(length)


def refuse_unknown_rules(settings: Mapping[str, Any], file: str) -> None:
    """Check that settings, as they are written in a file, have no rule that cannot be followed.

    Raises:
        DataError: they have; it is named.
    """
    for rule, neutral in _REFUSED.items():
        value = settings.get(rule)
        if value not in neutral:
            raise DataError(
                f"{file}: {rule}",
                value,
                f"this rule is not supported (supported: {', '.join(APPLIED)})",
                "remove it from the file if the texts may be decoded without it",
            )


def read_rules(config: Any, vocabulary: int, name: str) -> GenerationRules:
    """Sort a loaded model's generation_config into rules applied and settings ignored.

    Args:
        config: the library's GenerationConfig.
        vocabulary: ids at and beyond this are masked (they are not in the tokenizer).
        name: the checkpoint's name, for the error.

    Raises:
        DataError: a rule forces an id that is masked; it is named.
    """
    applied = {rule: value for rule in APPLIED if (value := _in_force(config, rule, vocabulary)) is not None}
    for rule in ("forced_bos_token_id", "forced_eos_token_id"):
        _require_known_ids(rule, applied.get(rule, []), vocabulary, name)
    ignored = {key: getattr(config, key, None) for key in _IGNORED}
    return GenerationRules(applied, {key: value for key, value in ignored.items() if value not in _IGNORED[key]})


def _in_force(config: Any, rule: str, vocabulary: int) -> Any:
    """A rule's value as the library's processors want it; None where it says nothing."""
    value = getattr(config, rule, None)
    # A forced token may well have the id 0.
    if value is None or (not rule.startswith("forced_") and value in (0, [])):
        return None
    if rule.endswith("repetition_penalty"):
        return None if value == 1 else float(value)
    # The library refuses to ban or favour an id that has no score; one that is masked can never be generated anyway.
    if rule == "bad_words_ids":
        return [word for word in value if max(word) < vocabulary] or None
    if rule == "sequence_bias":
        return [[ids, float(bias)] for ids, bias in value if max(ids) < vocabulary] or None
    return value


def _require_known_ids(rule: str, value: Any, vocabulary: int, name: str) -> None:
    ids = value if isinstance(value, list) else [value]
    if not all(0 <= token < vocabulary for token in ids):
        raise DataError(
            f"{name}/generation_config.json: {rule}",
            value,
            f"its tokenizer does not have that id (allowed: 0 to {vocabulary - 1})",
            "correct generation_config.json",
        )
