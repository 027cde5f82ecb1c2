"""Language tokens of checkpoints for many languages (mBART, NLLB, M2M100): which are used, told before decoding."""

from __future__ import annotations

from typing import Any

from bild_bench.models.rules import GenerationRules


def languages_of(tokenizer: Any, rules: GenerationRules, start: int) -> dict[str, str | None] | None:
    """The source's language as the tokenizer marks it, and the target's as the first token says it.

    Args:
        tokenizer: the library's.
        rules: forced_bos_token_id names the target's language (mBART-50, NLLB, M2M100).
        start: the decoder's start token, which names it in the first mBART.

    Returns:
        {"source", "target"}, None where no token says so; None altogether for a tokenizer without language tokens.
    """
    source = getattr(tokenizer, "src_lang", None)
    if source is None:
        return None
    first = rules.applied.get("forced_bos_token_id", start)
    token = str(tokenizer.convert_ids_to_tokens(first if isinstance(first, int) else start))
    ordinary = {str(piece) for piece in (tokenizer.eos_token, tokenizer.bos_token, tokenizer.pad_token)}
    return {"source": str(source), "target": None if token in ordinary else token}


def language_line(languages: dict[str, str | None]) -> str:
    """For a person, with what to do where the target's language is said nowhere."""
    said = f"language tokens: source {languages['source']}"
    if languages["target"] is None:
        fix = "set forced_bos_token_id in generation_config.json"
        return f"warning: {said}, and none for the target, whose language is left to the model; {fix}"
    fix = "src_lang in tokenizer_config.json and forced_bos_token_id in generation_config.json change them"
    return f"{said}, target {languages['target']}, as the checkpoint says; {fix}"
