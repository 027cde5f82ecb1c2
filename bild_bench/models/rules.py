"""Rules in a checkpoint's generation_config: applied alike to both models, or refused by name.

A rule changes which tokens are possible at all (forced tokens, a minimum length, banned n-grams or ids), so it belongs
to the target's definition: the large model's rules hold for the small one too, and for every method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation import logits_process as library

from bild_bench.decoding.records import Limits
from bild_bench.decoding.session import Session
from bild_bench.errors import DataError
from bild_bench.models.rows import TensorRows

_APPLIED = (
    "min_length",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
)
# Neutral values: with these a rule says nothing.
_REFUSED = {
    "repetition_penalty": (None, 1.0),
    "encoder_repetition_penalty": (None, 1.0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "sequence_bias": (None,),
    "exponential_decay_length_penalty": (None,),
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

    def wrap(self, session: Session, limits: Limits) -> Session:
        """The session under these rules; itself where there are none."""
        return RuledSession(session, self.processors(limits), limits.start_id) if self.applied else session

    def processors(self, limits: Limits) -> Any:
        """The library's processors for these rules, in the order in which its own `generate` applies them."""
        ends, rule = sorted(limits.end_ids), self.applied
        found = library.LogitsProcessorList()
        if "no_repeat_ngram_size" in rule:
            found.append(library.NoRepeatNGramLogitsProcessor(rule["no_repeat_ngram_size"]))
        if "bad_words_ids" in rule:
            found.append(library.NoBadWordsLogitsProcessor(rule["bad_words_ids"], ends))
        if "min_length" in rule:
            found.append(library.MinLengthLogitsProcessor(rule["min_length"], ends))
        if "min_new_tokens" in rule:
            found.append(library.MinNewTokensLengthLogitsProcessor(1, rule["min_new_tokens"], ends))
        if "forced_bos_token_id" in rule:
            found.append(library.ForcedBOSTokenLogitsProcessor(rule["forced_bos_token_id"]))
        if "forced_eos_token_id" in rule:
            found.append(library.ForcedEOSTokenLogitsProcessor(limits.max_tokens + 1, rule["forced_eos_token_id"]))
        if "suppress_tokens" in rule:
            found.append(library.SuppressTokensLogitsProcessor(rule["suppress_tokens"]))
        if "begin_suppress_tokens" in rule:
            begin = 2 if "forced_bos_token_id" in rule else 1
            found.append(library.SuppressTokensAtBeginLogitsProcessor(rule["begin_suppress_tokens"], begin))
        return found


class RuledSession:
    """A session whose scores have gone through the rules; see `decoding.session.Session`."""

    def __init__(self, session: Session, processors: Any, start_id: int) -> None:
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


def read_rules(config: Any, vocabulary: int, name: str) -> GenerationRules:
    """Sort a loaded model's generation_config into rules applied, ignored, and refused.

    Args:
        config: the library's GenerationConfig.
        vocabulary: ids at and beyond this are masked (they are not in the tokenizer).
        name: the checkpoint's name, for the error.

    Raises:
        DataError: a rule is set that is not supported, or forces an id that is masked; it is named.
    """
    for rule, neutral in _REFUSED.items():
        value = getattr(config, rule, None)
        if value not in neutral:
            raise DataError(
                f"{name}/generation_config.json: {rule}",
                value,
                f"this rule is not supported (supported: {', '.join(_APPLIED)})",
                "remove it from the file if the texts may be decoded without it",
            )
    found = {rule: getattr(config, rule, None) for rule in _APPLIED}
    applied: dict[str, Any] = {
        rule: value for rule, value in found.items() if value not in (None, 0, []) or _is_token(rule, value)
    }
    if "bad_words_ids" in applied:
        # The library refuses to ban an id that has no score; one that is masked can never be generated anyway.
        words = [word for word in applied.pop("bad_words_ids") if max(word) < vocabulary]
        applied |= {"bad_words_ids": words} if words else {}
    for rule in ("forced_bos_token_id", "forced_eos_token_id"):
        _require_known_ids(rule, applied.get(rule, []), vocabulary, name)
    ignored = {key: getattr(config, key, None) for key in _IGNORED}
    return GenerationRules(applied, {key: value for key, value in ignored.items() if value not in _IGNORED[key]})


def _is_token(rule: str, value: Any) -> bool:
    """A forced token may well have the id 0."""
    return rule.startswith("forced_") and isinstance(value, int)


def _require_known_ids(rule: str, value: Any, vocabulary: int, name: str) -> None:
    ids = value if isinstance(value, list) else [value]
    if not all(0 <= token < vocabulary for token in ids):
        raise DataError(
            f"{name}/generation_config.json: {rule}",
            value,
            f"its tokenizer does not have that id (allowed: 0 to {vocabulary - 1})",
            "correct generation_config.json",
        )
