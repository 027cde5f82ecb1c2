"""Texts to train on: prefixes, limits, what is held out, what is left out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transformers

from bild_bench.errors import DataError, UsageError
from bild_bench.tasks import load_task
from bild_bench.training.texts import Encoded, Learned, Source, read_source
from tests.checkpoints import END, save_tokenizer
from tests.made_data import jsonl
from tests.made_training import silent, source, texts

WIDE = (None, None)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return transformers.AutoTokenizer.from_pretrained(save_tokenizer(tmp_path_factory.mktemp("tokenizer")))


def rows(count: int, word: str = "dog") -> list[dict[str, str]]:
    letters = [chr(97 + number) for number in range(count)]
    return [{"source": f"the {word} {letter}", "target": f"a man {letter}"} for letter in letters]


def read(tokenizer: Any, limits: tuple[int | None, int | None] = WIDE, seed: int = 0, **given: Any) -> Learned:
    return read_source(source(**given), tokenizer, limits, seed, silent)


def words(tokenizer: Any, encoded: tuple[Encoded, ...], side: str) -> list[str]:
    return [tokenizer.decode(getattr(text, side), skip_special_tokens=True) for text in encoded]


def test_the_prefix_stands_before_every_source_and_no_target(tokenizer: Any, tmp_path: Path) -> None:
    learned = read(tokenizer, data=texts(tmp_path), prefix="child sees: ")
    for encoded in (learned.train, learned.validation):
        assert all(text.startswith("child sees") for text in words(tokenizer, encoded, "source"))
        assert not any("child" in text for text in words(tokenizer, encoded, "target"))
    assert words(tokenizer, read(tokenizer, data=tmp_path).train, "source")[0] == "the dog sees the house"


def test_every_text_ends_with_its_end_token_also_where_it_is_cut(tokenizer: Any, tmp_path: Path) -> None:
    whole = read(tokenizer, data=texts(tmp_path))
    cut = read(tokenizer, (5, 3), data=tmp_path)
    for encoded, most in ((whole.train, (1024, 128)), (cut.train, (5, 3)), (cut.validation, (5, 3))):
        for text in encoded:
            for ids, size in ((text.source, most[0]), (text.target, most[1])):
                assert len(ids) <= size
                assert ids[-1] == END
                assert END not in ids[:-1]
    assert {len(text.source) for text in cut.train} == {5}
    assert {len(text.target) for text in cut.train} == {3}
    assert [text.source[:4] for text in cut.train] == [text.source[:4] for text in whole.train]
    assert max(len(text.source) for text in whole.train) > 5


def test_the_limits_are_the_tasks_unless_given_one_by_one(tokenizer: Any, tmp_path: Path) -> None:
    small = replace(source(texts(tmp_path)).task, source_limit=4, target_limit=6)
    learned = read_source(replace(source(tmp_path), task=small), tokenizer, (None, 2), 0, silent)
    assert {len(text.source) for text in learned.train} == {4}
    assert {len(text.target) for text in learned.train} == {2}


def test_validation_is_the_split_of_the_same_data(tokenizer: Any, tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", rows(6))
    jsonl(tmp_path / "validation.jsonl", rows(3, "cat"))
    learned = read(tokenizer, data=tmp_path)
    assert words(tokenizer, learned.validation, "source") == ["the cat a", "the cat b", "the cat c"]
    assert words(tokenizer, learned.train, "target") == [f"a man {letter}" for letter in "abcdef"]
    assert (learned.label, learned.dropped) == (f"custom/{tmp_path.name}", 0)


def test_validation_may_lie_elsewhere(tokenizer: Any, tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", rows(6))
    other = jsonl(tmp_path / "other.jsonl", rows(2, "tree"))
    learned = read(tokenizer, data=train, validation=str(other))
    assert words(tokenizer, learned.validation, "source") == ["the tree a", "the tree b"]
    assert len(learned.train) == 6


def test_texts_held_out_are_no_longer_trained_on(tokenizer: Any, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "all.jsonl", rows(20))
    learned = read(tokenizer, data=path, hold_out=5)
    held, kept = (words(tokenizer, encoded, "source") for encoded in (learned.validation, learned.train))
    assert (len(held), len(kept)) == (5, 15)
    assert sorted(held + kept) == sorted(f"the dog {chr(97 + number)}" for number in range(20))
    assert read(tokenizer, data=path, hold_out=5).validation == learned.validation
    assert read(tokenizer, data=path, hold_out=5, seed=1).validation != learned.validation


def test_empty_texts_are_left_out_on_either_side(tokenizer: Any, tmp_path: Path) -> None:
    empty = [{"source": " ", "target": "a man"}, {"source": "the dog", "target": ""}]
    jsonl(tmp_path / "train.jsonl", [empty[0], *rows(4), empty[1]])
    jsonl(tmp_path / "validation.jsonl", [*rows(2), *empty])
    learned = read(tokenizer, data=tmp_path, prefix="child: ")
    assert (len(learned.train), len(learned.validation), learned.dropped) == (4, 2, 2)


def test_a_limit_is_a_sample_by_the_seed(tokenizer: Any, tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", rows(20))
    jsonl(tmp_path / "validation.jsonl", rows(3))
    samples = [read(tokenizer, data=tmp_path, limit=8, seed=seed) for seed in (0, 0, 1)]
    assert [len(sample.train) for sample in samples] == [8, 8, 8]
    assert samples[0].train == samples[1].train != samples[2].train
    assert len(samples[0].validation) == 3
    assert samples[0].fingerprint != samples[2].fingerprint


@pytest.mark.parametrize(
    ("train", "given", "which"),
    [(rows(4), {"hold_out": 4}, "training"), ([{"source": " ", "target": "x"}], {"hold_out": 1}, "training")],
)
def test_nothing_left_is_one_clear_line(
    tokenizer: Any, tmp_path: Path, train: list[dict[str, str]], given: dict[str, Any], which: str
) -> None:
    path = jsonl(tmp_path / "train.jsonl", train)
    with pytest.raises(DataError, match=f"^--data: .*no {which} text is left; check the columns and --hold-out$"):
        read(tokenizer, data=path, **given)


def test_no_validation_text_is_one_clear_line(tokenizer: Any, tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", rows(4))
    jsonl(tmp_path / "validation.jsonl", [{"source": "", "target": "x"}])
    with pytest.raises(DataError, match="no validation text is left"):
        read(tokenizer, data=tmp_path)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_weight_must_be_above_zero(weight: float) -> None:
    with pytest.raises(UsageError, match=r"--weight: .*must be above 0"):
        Source(load_task("custom"), "texts", weight=weight)


def test_one_file_alone_is_not_validated_on(tmp_path: Path, tokenizer: Any) -> None:
    path = jsonl(tmp_path / "texts.jsonl", [{"source": "a", "target": "b"}] * 3)
    with pytest.raises(DataError, match=r"--validation-data: not given: .* is a single file.*add --hold-out"):
        read_source(Source(load_task("custom"), str(path)), tokenizer, WIDE, 0, silent)


def test_a_split_that_is_not_there_is_told_by_the_options_of_training(tokenizer: Any, tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", rows(4))
    with pytest.raises(DataError, match=r"^--data: .*has no validation texts: not in .*add --hold-out 200") as caught:
        read(tokenizer, data=tmp_path)
    assert "--split" not in str(caught.value)
    with pytest.raises(DataError, match=r"^--validation-data: '.*none': there is no such file or folder"):
        read(tokenizer, data=tmp_path, validation=str(tmp_path / "none"))
    other = jsonl(tmp_path / "other" / "validation.jsonl", rows(2)).parent
    with pytest.raises(DataError, match=r"^--data: .*has no train texts: .*give texts to train on with --data PATH$"):
        read(tokenizer, data=other)
