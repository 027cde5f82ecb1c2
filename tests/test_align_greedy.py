"""Decoding many texts at a time: what is written is what the library writes for each text alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.training.greedy import Large, greedy, load_large
from tests.checkpoints import END, VOCABULARY, WORDS, save_bart, save_marian, save_mt5, save_t5
from tests.loading import edit, load
from tests.method_pairs import decode, limits_of

LIMIT = 12
TEXTS = [" ".join((WORDS * 2)[start : start + length]) for start in range(8) for length in (1, 2, 5, 9)]


def loaded(folder: Path) -> Large:
    return load_large(str(folder), lambda line: None)


def ids_of(large: Large) -> list[list[int]]:
    return [large.tokenizer(text)["input_ids"] for text in TEXTS]


def v1_1(folder: Path, **shape: Any) -> Path:
    return save_t5(folder, gated=True, tied=False, seed=2, **shape)


def deeper(folder: Path, **shape: Any) -> Path:
    return save_t5(folder, seed=4, num_decoder_layers=4, **shape)


@pytest.mark.parametrize("save", [save_t5, v1_1, save_mt5, save_bart, save_marian])
def test_texts_in_batches_are_those_that_the_library_writes_one_by_one(
    save: Callable[..., Path], tmp_path: Path
) -> None:
    large = loaded(save(tmp_path, vocab_size=VOCABULARY))
    expected = []
    for source in ids_of(large):
        output = large.model.generate(
            torch.tensor([source]), max_new_tokens=LIMIT, max_length=None, num_beams=1, do_sample=False
        )
        expected.append(output[0, 1:].tolist())
    assert len(set(map(tuple, expected))) > 4, "texts that differ"
    assert greedy(large, ids_of(large), LIMIT, 150) == expected
    assert greedy(large, ids_of(large), LIMIT, 1) == expected, "a budget that no two texts share"


@pytest.mark.parametrize("save", [v1_1, deeper])
def test_texts_are_those_of_vanilla_decoding_where_the_tokenizer_is_the_smaller(
    save: Callable[..., Path], tmp_path: Path
) -> None:
    large, pair = loaded(save(tmp_path)), load(tmp_path)
    assert len(large.surplus) == 8
    expected = [list(decode(pair, "vanilla", {}, limits_of(LIMIT), text).tokens) for text in TEXTS]
    assert greedy(large, ids_of(large), LIMIT, 150) == expected


def test_an_id_that_the_tokenizer_lacks_is_never_written(tmp_path: Path) -> None:
    large = loaded(v1_1(tmp_path))
    with torch.no_grad():
        large.model.lm_head.weight[:VOCABULARY] = 0
    plain = large.model.generate(torch.tensor([ids_of(large)[0]]), max_new_tokens=LIMIT, max_length=None)
    assert int(plain.max()) >= VOCABULARY, "the library alone writes such ids"
    assert max(max(ids) for ids in greedy(large, ids_of(large), LIMIT, 150)) < VOCABULARY


def test_a_text_ends_with_the_first_of_its_end_tokens_and_else_at_the_limit(tmp_path: Path) -> None:
    edit(v1_1(tmp_path, vocab_size=VOCABULARY), "generation_config.json", eos_token_id=[END, 9, 27])
    large = loaded(tmp_path)
    assert large.ends == (END, 9, 27)
    written = greedy(large, ids_of(large), LIMIT, 150)
    ended = [ids for ids in written if ids[-1] in large.ends]
    assert 0 < len(ended) < len(written)
    for ids in written:
        assert not set(ids[:-1]) & set(large.ends)
        assert len(ids) == LIMIT or ids in ended


def test_a_batch_keeps_to_its_budget_with_padding_and_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = loaded(v1_1(tmp_path))
    shapes: list[tuple[int, ...]] = []
    generate = large.model.generate

    def watched(**given: Any) -> Any:
        shapes.append(tuple(given["inputs"].shape))
        return generate(**given)

    monkeypatch.setattr(large.model, "generate", watched)
    greedy(large, ids_of(large), LIMIT, 100)
    assert sum(texts for texts, _ in shapes) == len(TEXTS)
    assert all(texts * (width + LIMIT) <= 100 for texts, width in shapes)
    assert len(shapes) < len(TEXTS) / 2, "texts of like length share a batch"
