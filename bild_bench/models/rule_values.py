"""What the settings of a generation_config may hold, so that a wrong value is one line before anything is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bild_bench.errors import DataError


def _is_whole(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_whole, value))


def _is_sequence(value: Any) -> bool:
    return _are_ids(value) and value != []


def _are_sequences(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_sequence, value))


def _are_biases(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and _is_sequence(pair[0]) and _is_number(pair[1]) for pair in value
    )


def _is_decay(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_whole(value[0]) and _is_positive(value[1])


_COUNT = (_is_whole, "a whole number from 0, without quotes")
_IDS = (_are_ids, "a list of token ids, such as [3, 4]")
_FACTOR = (_is_positive, "a number above 0, without quotes")
_ID = (_is_whole, "one token id, without quotes")
_ID_OR_IDS = (lambda value: _is_whole(value) or _is_sequence(value), "a token id, or a list of them")

_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "min_length": _COUNT,
    "min_new_tokens": _COUNT,
    "no_repeat_ngram_size": _COUNT,
    "encoder_no_repeat_ngram_size": _COUNT,
    "bad_words_ids": (_are_sequences, "a list of lists of token ids, none of them empty, such as [[3], [4, 5]]"),
    "suppress_tokens": _IDS,
    "begin_suppress_tokens": _IDS,
    "forced_bos_token_id": _ID,
    "forced_eos_token_id": _ID_OR_IDS,
    "repetition_penalty": _FACTOR,
    "encoder_repetition_penalty": _FACTOR,
    "sequence_bias": (_are_biases, "a list of [token ids, number], such as [[[3, 4], -2.0]]"),
    "exponential_decay_length_penalty": (_is_decay, "[tokens, factor], such as [20, 1.05]"),
    "decoder_start_token_id": _ID,
    "eos_token_id": _ID_OR_IDS,
    "bos_token_id": (lambda value: isinstance(value, int), "one token id, without quotes"),
    "pad_token_id": (lambda value: isinstance(value, int), "one token id, without quotes"),
}


def check_values(settings: dict[str, Any], file: str) -> None:
    """Check the rules and special ids among a file's settings; null says nothing.

    Raises:
        DataError: one of them is of another form; it is named.
    """
    for name, (fits, allowed) in _VALUES.items():
        value = settings.get(name)
        if value is not None and not fits(value):
            raise DataError(f"{file}: {name}", value, f"must be {allowed}", "correct the file")
