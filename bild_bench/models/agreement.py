"""Whether the library's modules can serve a session: held to their own forward pass when a model is opened.

A session feeds tokens in blocks and one by one, and takes some back. Not every decoder's cache can do that, and some
that cannot give other scores without a word.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bild_bench.errors import DataError
from bild_bench.models.reference import ReferenceModel

# Differences allowed, as a share of the scores' spread: rounding stays well below, a wrong position far above.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 0.01, torch.bfloat16: 0.04}
_LENGTH = 6


def require_agreement(model: ReferenceModel, vocabulary: int, start_id: int, option: str, name: str) -> None:
    """Decode six tokens of one source at once, as a block, one by one, and after a truncation; compare the scores.

    Args:
        model: to be checked; six passes of its decoder and one of its encoder.
        vocabulary: ids to take tokens from.
        start_id: the decoder's start token.
        option: the flag that named the model, for the error.
        name: the checkpoint's, for the error.

    Raises:
        DataError: the scores are not the same, or a pass is not possible.
    """
    kind = model.model.config.model_type
    try:
        differences = _differences(model, vocabulary, start_id)
    except Exception as error:
        # What an architecture does not foresee ends in whatever its code runs into.
        reason = " ".join(str(error).split())[:160]
        problem = f"is of type {kind}, which cannot be decoded in blocks ({type(error).__name__}: {reason})"
        raise DataError(option, name, problem, "give another checkpoint") from error
    allowed = TOLERANCES[model.model.dtype]
    narrow = "" if allowed <= TOLERANCES[torch.float32] else "try --dtype float32, or "
    for what, found in differences.items():
        # Written so that NaN is no agreement.
        if not found <= allowed:
            raise DataError(
                option,
                name,
                f"is of type {kind}, whose cache does not serve {what}: scores differ by {found:.2g} of their spread "
                f"from those without a cache (allowed: {allowed:.2g})",
                f"{narrow}give another checkpoint",
            )


def _differences(model: ReferenceModel, vocabulary: int, start_id: int) -> dict[str, float]:
    ids = _ordinary_ids(model, vocabulary, start_id)
    source = model.encode(torch.tensor([ids[_LENGTH - 1 :]], device=model.device))
    tokens = [start_id, *ids[: _LENGTH - 1]]
    expected = model.at_once(tokens, source)
    session = model.session(source)
    found = {"a block of tokens": (expected, session.extend(tokens).logits)}
    session.truncate(2)
    single = torch.cat([session.extend([token]).logits for token in tokens[2:4]])
    found["single tokens after a truncation"] = (expected[2:4], single)
    session.truncate(3)
    found["a block of tokens after a truncation"] = (expected[3:], session.extend(tokens[3:]).logits)
    return {what: _difference(*scores) for what, scores in found.items()}


def _ordinary_ids(model: ReferenceModel, vocabulary: int, start_id: int) -> list[int]:
    """Ids from all over the vocabulary, none of which means something to the model: padding moves positions."""
    config = model.model.config.get_text_config(decoder=True)
    special = {start_id, getattr(config, "pad_token_id", None), getattr(config, "bos_token_id", None), 0, 1, 2, 3}
    ids = [token for token in range(vocabulary) if token not in special] or [start_id]
    return [ids[(place * len(ids)) // 12] for place in range(12)]


def _difference(expected: Tensor, found: Tensor) -> float:
    """Root mean square of the differences, over the standard deviation of the scores of one position."""
    expected, found = expected.double(), found.double()
    return float((found - expected).pow(2).mean().sqrt() / expected.std(dim=-1).mean())
