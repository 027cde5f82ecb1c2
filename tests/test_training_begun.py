"""A first attempt that ends before its first checkpoint binds nobody; whatever holds work does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bild_bench.errors import DataError, RunError, UsageError
from bild_bench.training.job import ALIGNMENT, RECORD, read_record
from tests.checkpoints import save_t5
from tests.command_line import call
from tests.made_alignment import HELD_OUT, command, make_pair, make_texts
from tests.made_data import jsonl
from tests.made_training import TEXTS, texts, trained


def test_a_run_that_failed_before_its_first_checkpoint_gives_its_folder_to_the_corrected_one(tmp_path: Path) -> None:
    init, out = save_t5(tmp_path / "t5"), tmp_path / "out"
    bad = tmp_path / "bad"
    jsonl(bad / "train.jsonl", TEXTS)
    jsonl(bad / "validation.jsonl", [{"source": " ", "target": "a"}])
    with pytest.raises(DataError, match="no validation text is left"):
        trained(bad, out, init)
    with pytest.raises(RunError, match="the loss is nan"):
        trained(texts(tmp_path / "data"), out, init, steps=50, every=50, optimizer="adamw", rate=1e30)
    assert trained(tmp_path / "data", out, init)["finished"]
    assert read_record(out)["asked"]["rate"] == 2e-4


def test_the_same_command_may_come_again_with_mended_texts(tmp_path: Path) -> None:
    init, out, data = save_t5(tmp_path / "t5"), tmp_path / "out", texts(tmp_path / "data")
    with pytest.raises(RunError, match="the loss is nan"):
        trained(data, out, init, steps=50, every=50, optimizer="adamw", rate=1e30)
    jsonl(data / "train.jsonl", TEXTS[::-1])
    save_t5(init, seed=5)
    assert trained(data, out, init)["finished"]


def test_a_tokenizer_of_a_failed_run_is_not_taken_for_one_of_the_new_texts(tmp_path: Path) -> None:
    data, out = texts(tmp_path / "data"), tmp_path / "out"
    with pytest.raises(RunError, match="the loss is nan"):
        trained(data, out, None, steps=50, every=50, optimizer="adamw", rate=1e30)
    assert not any("q" in piece for piece in pieces(out / "tokenizer"))
    jsonl(data / "train.jsonl", [{**row, "source": row["source"].replace("dog", "qqq")} for row in TEXTS])
    assert trained(data, out, None)["finished"]
    assert any("q" in piece for piece in pieces(out))


def pieces(folder: Path) -> list[str]:
    vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return [piece for piece, _ in vocabulary]


@pytest.mark.parametrize("kept", ["checkpoints/checkpoint-2/complete", "model.safetensors"])
def test_a_folder_that_holds_work_is_refused_to_another_run(kept: str, tmp_path: Path) -> None:
    data, init, out = texts(tmp_path / "data"), save_t5(tmp_path / "t5"), tmp_path / "out"
    with pytest.raises(RunError, match="the loss is nan"):
        trained(data, out, init, steps=50, every=50, optimizer="adamw", rate=1e30)
    (out / kept).parent.mkdir(parents=True, exist_ok=True)
    (out / kept).write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"^--every: 2: .* holds a run with every = 50"):
        trained(data, out, init)
    assert (out / kept).read_bytes() == b"mine"


def test_an_alignment_that_failed_before_its_first_shard_gives_its_folder_to_the_corrected_one(tmp_path: Path) -> None:
    models, out = make_pair(tmp_path), tmp_path / "out"
    data = make_texts(tmp_path / "texts.jsonl", 20 + HELD_OUT)
    asked = command(models, data, out)
    ended = call(*asked, "--max-time", "1e-9")
    assert ended.code == 0, ended.err
    assert (out / ALIGNMENT).is_file()
    other = tuple("400" if part == "600" else part for part in asked)
    ended = call(*other)
    assert ended.code == 0, ended.err
    assert json.loads((out / ALIGNMENT).read_text())["asked"]["decode_batch"] == 400
    ended = call(*asked)
    assert ended.code == 2
    assert "decode-batch = 400" in ended.last_remark
    assert (out / RECORD).is_file()


def test_a_run_of_its_own_does_not_take_an_alignments_folder(tmp_path: Path) -> None:
    data, init, out = texts(tmp_path / "data"), save_t5(tmp_path / "t5"), tmp_path / "out"
    with pytest.raises(RunError, match="the loss is nan"):
        trained(data, out, init, steps=50, every=50, optimizer="adamw", rate=1e30)
    (out / ALIGNMENT).write_text("{}")
    with pytest.raises(UsageError, match=r"^--every: 2: .* holds a run with every = 50"):
        trained(data, out, init)
