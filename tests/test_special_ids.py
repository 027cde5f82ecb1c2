"""What two models must share: the tokenizer's content, and start, end and pad ids."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.errors import DataError
from bild_bench.models.special_ids import SpecialIds, agree, read_special_ids, vocabulary_of
from tests import checkpoints as made

NAMES = {"large": "L", "small": "S"}


def tokenizer(folder: Path, **options: Any) -> Any:
    return transformers.AutoTokenizer.from_pretrained(made.save_tokenizer(folder, **options))


def model(width: int = 10, config: dict[str, Any] | None = None, reads: int = 10, **generation: Any) -> Any:
    """What is read of the library's model: two configurations, the width of the head, and how many ids it reads."""
    return SimpleNamespace(
        config=SimpleNamespace(**(config or {})),
        generation_config=SimpleNamespace(
            **{"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, **generation}
        ),
        get_output_embeddings=lambda: SimpleNamespace(weight=torch.empty(width, 2)),
        get_input_embeddings=lambda: SimpleNamespace(weight=torch.empty(reads, 2)),
    )


def read(large: Any, small: Any | None = None, vocabulary: int = 10) -> SpecialIds:
    models = {"large": large} if small is None else {"large": large, "small": small}
    return read_special_ids(models, vocabulary, NAMES)


def test_tokenizers_with_the_same_content_agree(tmp_path: Path) -> None:
    agree({"large": tokenizer(tmp_path / "a"), "small": tokenizer(tmp_path / "b")}, NAMES)
    agree({"large": tokenizer(tmp_path / "c")}, NAMES)


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ((*made.PIECES, "▁new"), r"46 and 47 pieces; '▁new' is id None and 46"),
        (made.PIECES[:-1], r"46 and 45 pieces; '\.'|46 and 45 pieces; ','"),
        ((*made.PIECES[:-2], ",", "."), r"46 and 46 pieces; ',' is id 45 and 44"),
    ],
    ids=["one more", "one less", "two exchanged"],
)
def test_tokenizers_that_differ_by_a_piece(tmp_path: Path, pieces: tuple[str, ...], words: str) -> None:
    pair = {"large": tokenizer(tmp_path / "a"), "small": tokenizer(tmp_path / "b", pieces=pieces)}
    with pytest.raises(
        DataError, match=f"--large and --small: 'L and S': their tokenizers differ: ({words})"
    ) as caught:
        agree(pair, NAMES)
    assert "give two models that were trained with the same tokenizer" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_vocabulary_and_two_normalisers(tmp_path: Path) -> None:
    pair = {"large": tokenizer(tmp_path / "a"), "small": tokenizer(tmp_path / "b", lowercase=True)}
    with pytest.raises(DataError, match=r"their tokenizers differ: the text .* becomes"):
        agree(pair, NAMES)


def test_one_vocabulary_and_an_end_token_only_on_one_side(tmp_path: Path) -> None:
    from tokenizers import processors

    other = tokenizer(tmp_path / "b")
    other.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    with pytest.raises(DataError, match="their tokenizers differ: the text"):
        agree({"large": tokenizer(tmp_path / "a"), "small": other}, NAMES)


@pytest.mark.parametrize("token", ["</s>", "<pad>"])
def test_markup_in_a_text_that_only_one_side_reads_as_a_token(tmp_path: Path, token: str) -> None:
    from tokenizers import AddedToken

    one, other = tokenizer(tmp_path / "a"), tokenizer(tmp_path / "b")
    other.add_tokens([AddedToken(token, special=True, normalized=True, single_word=True, lstrip=True)])
    assert one.get_vocab() == other.get_vocab()
    with pytest.raises(DataError, match="the text"):
        agree({"large": one, "small": other}, NAMES)


def test_the_vocabulary_ends_after_the_largest_id() -> None:
    assert vocabulary_of(SimpleNamespace(get_vocab=lambda: {"a": 0, "b": 7, "c": 3})) == 8


def test_ids_come_from_the_generation_config_first() -> None:
    elsewhere = {"decoder_start_token_id": 8, "eos_token_id": 9, "pad_token_id": 7}
    assert read(model(config=elsewhere)) == SpecialIds(0, (1,), 0)
    assert read(model(config=elsewhere, decoder_start_token_id=None)) == SpecialIds(8, (1,), 0)
    assert read(model(config=elsewhere, eos_token_id=None, pad_token_id=None)) == SpecialIds(0, (9,), 7)


def test_the_id_zero_is_an_id() -> None:
    assert read(model(config={"eos_token_id": 5}, eos_token_id=0)).ends == (0,)
    assert read(model(pad_token_id=None)).pad is None


@pytest.mark.parametrize("field", ["decoder_start_token_id", "eos_token_id"])
@pytest.mark.parametrize("value", [None, []])
def test_a_missing_id_is_named(field: str, value: Any) -> None:
    with pytest.raises(DataError, match=f"--large: 'L': its configuration names no {field}; add it to"):
        read(model(**{field: value}))


@pytest.mark.parametrize("field", ["decoder_start_token_id", "eos_token_id"])
@pytest.mark.parametrize("value", [-1, 10, "1", 1.0, [1, 10], [None]])
def test_an_id_that_the_tokenizer_does_not_have_is_named(field: str, value: Any) -> None:
    with pytest.raises(DataError, match=rf"--large: 'L': {field} is .*\(allowed: 0 to 9\); correct generation_config"):
        read(model(width=12, **{field: value}))


@pytest.mark.parametrize(
    "other", [{"decoder_start_token_id": 2}, {"eos_token_id": 2}, {"eos_token_id": [1, 2]}, {"pad_token_id": 2}]
)
def test_ids_that_differ_are_shown(other: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"--large and --small: .*start=0, ends=\(1,\), pad=0.* and .*must be the same"):
        read(model(), model(**other))


@given(ends=st.lists(st.integers(0, 9), min_size=1, max_size=4), order=st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_end_ids_are_a_set(ends: list[int], order: Any) -> None:
    shuffled = [*ends, ends[0]]
    order.shuffle(shuffled)
    assert read(model(eos_token_id=ends), model(eos_token_id=shuffled)).ends == tuple(sorted(set(ends)))


def test_one_end_id_alone_or_in_a_list() -> None:
    assert read(model(eos_token_id=3), model(eos_token_id=[3])).ends == (3,)


def test_a_model_that_scores_fewer_ids_than_the_tokenizer_has() -> None:
    with pytest.raises(DataError, match="--small: 'S': scores 9 ids, its tokenizer has 10"):
        read(model(width=10), model(width=9))
    assert read(model(width=10), model(width=128)).start == 0


def test_an_encoder_that_reads_fewer_ids_than_the_tokenizer_has() -> None:
    with pytest.raises(DataError, match=r"--large: .*: its encoder reads 9 ids, its tokenizer has 10; give a pair"):
        read(model(reads=9))
