"""The same texts and seed give the same tokenizer, in whatever process it is trained."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import sentencepiece
import transformers

from bild_bench.training.tokenizer import train_tokenizer
from tests.command_line import finish, start
from tests.made_data import jsonl


def corpus(count: int = 1500) -> list[str]:
    """Texts of many words that are equally frequent, so that ties are decided in every round of the training."""
    draw = random.Random(5)
    words = ["".join(draw.choices("abcdefghijklmno", k=draw.randint(2, 8))) for _ in range(1200)]
    return [" ".join(draw.choices(words, k=10)) for _ in range(count)]


def test_two_processes_train_the_same_tokenizer_byte_for_byte(tmp_path: Path) -> None:
    texts = corpus()
    jsonl(tmp_path / "texts.jsonl", [{"source": text, "target": text[::-1]} for text in texts])
    command = "train --task custom --data texts.jsonl --hold-out 20 --size little --vocab-size 600 --steps 1"
    running = [
        start(*command.split(), "--out", f"out{number}", cwd=tmp_path, PYTHONHASHSEED=str(number)) for number in (1, 2)
    ]
    ended = [finish(process, 300) for process in running]
    assert [end.code for end in ended] == [0, 0], ended[0].err
    first, second = ((tmp_path / f"out{number}" / "tokenizer.json").read_bytes() for number in (1, 2))
    assert first == second


def test_pieces_are_those_of_sentencepieces_own_tool(tmp_path: Path) -> None:
    texts = corpus(300)
    train_tokenizer(texts, 200, tmp_path / "made", seed=7)
    made: Any = transformers.AutoTokenizer.from_pretrained(tmp_path / "made", trust_remote_code=False)
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    sentencepiece.set_random_generator_seed(7)
    sentencepiece.SentencePieceTrainer.train(
        f"--input={tmp_path}/texts.txt --model_prefix={tmp_path}/m --vocab_size=200 --pad_id=0 --eos_id=1 --unk_id=2 "
        "--bos_id=-1 --normalization_rule_name=identity --character_coverage=1.0 --num_threads=4 --minloglevel=2 "
        "--input_sentence_size=2000000"
    )
    theirs: Any = sentencepiece.SentencePieceProcessor(model_file=f"{tmp_path}/m.model")
    assert made.convert_ids_to_tokens(range(200)) == [theirs.id_to_piece(number) for number in range(200)]
    for text in texts[:50]:
        assert made(text)["input_ids"] == [*theirs.encode(text), 1]


def test_a_text_longer_than_sentencepieces_usual_limit_counts(tmp_path: Path) -> None:
    # By default the trainer passes over lines of more than 4,192 bytes, and nothing would be left here.
    train_tokenizer([" ".join(corpus(100))] * 2, 60, tmp_path / "made")
    assert (tmp_path / "made" / "tokenizer.json").is_file()
