"""What two models must share to decode together: a tokenizer's content, and start, end and pad ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bild_bench.errors import DataError

# Texts on which tokenizers of one vocabulary still differ: case, spaces, umlauts, digits, symbols they do not know.
_PROBES = (
    "Drei Ziegen grüßen die müde Straßenbahn.",
    "  The  price\nrose 12,345.67 %",
    "\uff21\uff22\uff23 \ufb01 \xe9 e\u0301 \U0001f642 <pad> </s>",
    "",
)


@dataclass(frozen=True)
class SpecialIds:
    """The decoder's start token, the tokens that end a text, and padding (None where there is none)."""

    start: int
    ends: tuple[int, ...]
    pad: int | None


def vocabulary_of(tokenizer: Any) -> int:
    """One more than the largest id the tokenizer knows; scores beyond are masked."""
    return 1 + int(max(tokenizer.get_vocab().values()))


def agree(tokenizers: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Check that all tokenizers have the same content.

    Args:
        tokenizers: role -> tokenizer.
        names: role -> checkpoint's name, for the error.

    Raises:
        DataError: two of them differ; the message says where first.
    """
    (first, one), *others = tokenizers.items()
    for role, other in others:
        difference = _difference(one, other)
        if difference is not None:
            raise DataError(
                f"--{first} and --{role}",
                f"{names[first]} and {names[role]}",
                f"their tokenizers differ: {difference}",
                "give two models that were trained with the same tokenizer",
            )


def read_special_ids(models: Mapping[str, Any], vocabulary: int, names: Mapping[str, str]) -> SpecialIds:
    """Start, end and pad ids of all models, which must be the same.

    Args:
        models: role -> the library's model.
        vocabulary: see `vocabulary_of`; every model must score at least that many ids.
        names: role -> checkpoint's name, for the error.

    Raises:
        DataError: an id is missing, not in the tokenizer, or differs; a model scores fewer ids than the tokenizer has.
    """
    found: dict[str, SpecialIds] = {}
    for role, model in models.items():
        width = model.get_output_embeddings().weight.shape[0]
        if width < vocabulary:
            raise DataError(
                f"--{role}",
                names[role],
                f"scores {width} ids, its tokenizer has {vocabulary}",
                "give the tokenizer it was trained with",
            )
        read = model.get_input_embeddings().weight.shape[0]
        if read < vocabulary:
            problem = f"its encoder reads {read} ids, its tokenizer has {vocabulary}"
            raise DataError(f"--{role}", names[role], problem, "give a pair of encoder and decoder with one tokenizer")
        found[role] = _special_ids_of(model, vocabulary, f"--{role}", names[role])
    first, *others = found
    for role in others:
        if found[role] != found[first]:
            raise DataError(
                f"--{first} and --{role}",
                f"{found[first]} and {found[role]}",
                "start, end and pad ids must be the same",
                "correct generation_config.json of one of them",
            )
    return found[first]


def _special_ids_of(model: Any, vocabulary: int, option: str, name: str) -> SpecialIds:
    def setting(field: str) -> Any:
        value = getattr(model.generation_config, field, None)
        return getattr(model.config, field, None) if value is None else value

    start, ends = setting("decoder_start_token_id"), setting("eos_token_id")
    for field, value in (("decoder_start_token_id", start), ("eos_token_id", ends)):
        if value is None or value == []:
            raise DataError(option, name, f"its configuration names no {field}", "add it to generation_config.json")
        ids = value if field == "eos_token_id" and isinstance(value, list) else [value]
        if not all(isinstance(each, int) and 0 <= each < vocabulary for each in ids):
            problem = f"{field} is {value}, which its tokenizer does not have (allowed: 0 to {vocabulary - 1})"
            raise DataError(option, name, problem, "correct generation_config.json")
    ends = ends if isinstance(ends, list) else [ends]
    return SpecialIds(start, tuple(sorted(set(ends))), setting("pad_token_id"))


def _difference(one: Any, other: Any) -> str | None:
    left, right = one.get_vocab(), other.get_vocab()
    if left != right:
        piece = min(piece for piece in left.keys() | right.keys() if left.get(piece) != right.get(piece))
        return f"{len(left)} and {len(right)} pieces; {piece!r} is id {left.get(piece)} and {right.get(piece)}"
    for probe in _PROBES:
        if one(probe).input_ids != other(probe).input_ids:
            return f"the text {probe!r} becomes {one(probe).input_ids} and {other(probe).input_ids}"
    return None
