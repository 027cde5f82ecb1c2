"""Which language tokens a checkpoint for many languages is used with."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

from bild_bench.models.languages import language_line, languages_of
from bild_bench.models.rules import GenerationRules
from tests.checkpoints import PIECES


@pytest.fixture(scope="module")
def mbart() -> Any:
    """mBART-50's own tokenizer over a few pieces; it adds the language tokens itself."""
    vocab = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((piece, -1.0) for piece in PIECES[3:])]
    return transformers.MBart50Tokenizer(vocab=vocab, src_lang="de_DE")


def test_the_languages_are_those_of_the_tokenizer_and_of_the_forced_first_token(mbart: Any) -> None:
    english = mbart.convert_tokens_to_ids("en_XX")
    found = languages_of(mbart, GenerationRules({"forced_bos_token_id": english}, {}), mbart.eos_token_id)
    assert found == {"source": "de_DE", "target": "en_XX"}
    # What the text becomes says the same.
    assert mbart("the dog").input_ids[0] == mbart.convert_tokens_to_ids("de_DE")
    assert language_line(found).startswith(
        "language tokens: source de_DE, target en_XX, as the checkpoint says; src_lang"
    )


def test_the_first_mbart_names_the_target_in_its_start_token(mbart: Any) -> None:
    start = mbart.convert_tokens_to_ids("ro_RO")
    assert languages_of(mbart, GenerationRules({}, {}), start) == {"source": "de_DE", "target": "ro_RO"}


def test_a_target_language_that_nothing_names_is_a_warning(mbart: Any) -> None:
    found = languages_of(mbart, GenerationRules({}, {}), mbart.eos_token_id)
    assert found == {"source": "de_DE", "target": None}
    assert language_line(found) == (
        "warning: language tokens: source de_DE, and none for the target, whose language is left to the model;"
        " set forced_bos_token_id in generation_config.json"
    )


def test_a_tokenizer_without_language_tokens_says_nothing() -> None:
    tokenizer = transformers.T5Tokenizer(vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁a", -1.0)])
    assert languages_of(tokenizer, GenerationRules({}, {}), 0) is None
