"""`align`: what is decoded, what is stored and trained on, what it tells, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bild_bench.errors import UsageError
from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice
from bild_bench.models.library import load_model, load_tokenizer
from bild_bench.tasks import load_task
from bild_bench.training.align import align
from bild_bench.training.calibration import (
    MOST_VALIDATION,
    Plan,
    cost,
    decode,
    decode_in_process,
    make_plan,
    missing,
    read_calibrated,
)
from bild_bench.training.greedy import Large, greedy, load_large
from bild_bench.training.job import Calibration, Job, read_record, write_record
from bild_bench.training.processes import run_in_processes
from bild_bench.training.recipe import Recipe
from bild_bench.training.run import _note_start as note_start
from bild_bench.training.texts import Source
from tests.checkpoints import save_t5, save_tokenizer
from tests.command_line import Ended, call
from tests.made_alignment import HELD_OUT, TARGET_LIMIT, command, make_pair, make_texts

TEXTS = 200


def quiet(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, texts.jsonl, and `out` aligned on half of the texts."""
    folder = make_pair(tmp_path_factory.mktemp("made"))
    make_texts(folder / "texts.jsonl", TEXTS + HELD_OUT)
    ended = call(*command(folder, folder / "texts.jsonl", folder / "out", "--share", "0.5"))
    assert ended.code == 0, ended.err
    (folder / "stdout.txt").write_text(ended.out)
    return folder


def job_of(folder: Path, out: Path, share: float = 1.0, **settings: Any) -> Job:
    """What `command` asks for, as a job."""
    recipe: dict[str, Any] = {"source_limit": 16, "target_limit": TARGET_LIMIT, "threads": 1, **settings}
    source = Source(load_task("custom"), str(folder / "texts.jsonl"), "near: ", hold_out=HELD_OUT)
    calibration = Calibration(str(folder / "large"), share, 600)
    return Job((source,), Recipe(**recipe), out, init=str(folder / "small"), calibration=calibration)


def large_of(folder: Path) -> Large:
    return load_large(str(folder / "large"), quiet)


def shards_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "calibration").glob("*.parquet")}


def stored(out: Path, kind: str) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in sorted((out / "calibration").glob(f"*-{kind}-*.parquet"))])


def test_the_large_models_texts_are_stored_with_its_ids(made: Path) -> None:
    large, rows = large_of(made), stored(made / "out", "train")
    sources = [large.tokenizer("near: " + text)["input_ids"] for text in rows.source]
    expected = greedy(large, sources, TARGET_LIMIT, 1)
    assert [list(ids) for ids in rows.target_ids] == expected
    assert list(rows.source_tokens) == list(map(len, sources))
    assert list(rows.target) == [large.tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in expected]
    assert list(rows.cut) == [ids[-1] not in large.ends for ids in expected]
    assert 0 < rows.cut.sum() < len(rows)
    assert set(rows.task) == {1}


def test_training_reads_those_ids_and_not_the_text_encoded_anew(made: Path) -> None:
    checkpoint = find_checkpoint(ModelChoice(str(made / "small")), "--small", quiet)
    model, tokenizer = load_model(checkpoint, "--small", "cpu", "float32"), load_tokenizer(checkpoint, "--small")
    (learned,) = read_calibrated(job_of(made, made / "out", 0.5), model, tokenizer)
    rows = stored(made / "out", "train")
    # What ran into the length limit is no target.
    rows = rows[~rows.cut]
    assert [list(text.target) for text in learned.train] == [list(ids) for ids in rows.target_ids]
    assert [list(text.source) for text in learned.train] == [
        tokenizer("near: " + text).input_ids for text in rows.source
    ]
    anew = tokenizer(list(rows.target)).input_ids
    assert any(list(text.target) != ids for text, ids in zip(learned.train, anew, strict=True)), "it would be others"
    assert len(learned.validation) == (~stored(made / "out", "validation").cut).sum()


def test_a_share_is_a_seeded_sample_and_validation_texts_are_none_of_it(made: Path, tmp_path: Path) -> None:
    def drawn(share: float, kind: str, seed: int = 0) -> list[str]:
        plan = make_plan(job_of(made, tmp_path, share, seed=seed), share, quiet)
        return [text.id for shard in plan.shards if f"-{kind}-" in shard.name for text in shard.examples]

    half = drawn(0.5, "train")
    assert len(half) == len(set(half)) == TEXTS / 2
    assert list(stored(made / "out", "train").id) == half
    assert half == drawn(0.5, "train") != drawn(0.5, "train", seed=1)
    assert len(drawn(0.001, "train")) == 1
    assert set(half) < set(drawn(1.0, "train"))
    assert len(drawn(1.0, "train")) == TEXTS
    assert len(drawn(0.5, "validation")) == HELD_OUT
    assert not set(drawn(0.5, "validation")) & set(drawn(1.0, "train"))


def test_at_most_a_thousand_validation_texts_are_decoded(made: Path, tmp_path: Path) -> None:
    make_texts(tmp_path / "texts.jsonl", MOST_VALIDATION + 300)
    job = job_of(made, tmp_path / "out")
    source = replace(job.sources[0], data=str(tmp_path / "texts.jsonl"), hold_out=MOST_VALIDATION + 200)
    plan = make_plan(replace(job, sources=(source,)), 1.0, quiet)
    assert (plan.texts[0]["validation"], plan.texts[0]["train"]) == (MOST_VALIDATION, 100)


def test_the_cost_of_both_halves_is_told(made: Path) -> None:
    rows = pd.concat([stored(made / "out", "train"), stored(made / "out", "validation")])
    record = json.loads((made / "out" / "alignment.json").read_text())
    decoding, training = record["decoding"], record["training"]
    assert decoding.pop("seconds") > 0
    assert training.pop("seconds") > 0
    assert decoding == {
        "texts": TEXTS / 2 + HELD_OUT,
        "source_tokens": rows.source_tokens.sum(),
        "target_tokens": sum(map(len, rows.target_ids)),
        "cut": rows.cut.sum(),
    }
    assert training["steps"] == 30
    whole = (~stored(made / "out", "train").cut).sum()
    rounds, rest = divmod(30, -(-whole // 8))
    assert rounds * whole < training["texts"] <= rounds * whole + 8 * rest
    told, card = (made / "stdout.txt").read_text(), (made / "out" / "README.md").read_text()
    for half in (decoding, training):
        for count in ("texts", "source_tokens", "target_tokens"):
            assert f"{half[count]:,}" in told
            assert f"{half[count]:,}" in card
    assert f"{decoding['cut']} texts reached the length limit and are not used as targets; finished" in told
    assert f"greedy outputs of {made / 'large'}" in card
    assert f"Started from {made / 'small'}" in card
    assert record["asked"]["small"] == str(made / "small")


def test_a_finished_alignment_is_left_alone_and_told_as_json(made: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (made / "out").rglob("*.safetensors")}
    ended = call(*command(made, made / "texts.jsonl", made / "out", "--share", "0.5", "--json"))
    assert ended.code == 0
    told = json.loads(ended.out)
    assert told["out"] == str(made / "out")
    assert told["finished"]
    assert {half: told[half]["texts"] > 0 for half in ("decoding", "training")} == {"decoding": True, "training": True}
    assert before == {path: path.stat().st_mtime_ns for path in (made / "out").rglob("*.safetensors")}


def test_processes_share_the_shards_and_make_the_same_files(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, alone, shared, other = large_of(made), tmp_path / "alone", tmp_path / "shared", tmp_path / "other"
    plan = two_shards(job_of(made, alone))
    for out in (alone, shared, other):
        (out / "calibration").mkdir(parents=True)
    decode(large, job_of(made, alone), plan.shards, 600, None)
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        decode(large, job_of(made, shared), plan.shards, 600, None)
        assert len(shards_of(shared)) == 2 - int(rank)
    monkeypatch.undo()
    job = job_of(made, other)
    run_in_processes(decode_in_process, (job, plan.shards, str(made / "large"), 600, None), 1)
    assert shards_of(alone) == shards_of(shared) == shards_of(other)
    assert len(shards_of(alone)) == 2


def two_shards(job: Job) -> Plan:
    """A plan of the validation texts, and of the training texts."""
    plan = make_plan(job, 1.0, quiet)
    assert len(plan.shards) == 2
    return plan


def test_no_shard_is_begun_after_the_time_is_up(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    record = align(job_of(made, out, 0.5, max_time=1e-9, steps=1, epochs=None), quiet)
    assert not record["finished"]
    assert "training" not in record
    assert shards_of(out) == {}
    record = align(job_of(made, out, 0.5, steps=1, epochs=None), quiet)
    assert record["finished"]
    assert shards_of(out) == shards_of(made / "out")


def test_several_tasks_keep_their_prefixes(made: Path, tmp_path: Path) -> None:
    job = job_of(made, tmp_path / "out", 0.1, steps=2, epochs=None)
    sources = (job.sources[0], replace(job.sources[0], prefix="a house: ", limit=100))
    align(replace(job, sources=sources), quiet)
    large = large_of(made)
    for task, prefix, count in ((1, "near: ", 20), (2, "a house: ", 6)):
        rows = pd.read_parquet(tmp_path / "out" / "calibration" / f"{task}-train-000000.parquet")
        assert len(rows) == count
        assert set(rows.task) == {task}
        ids = [large.tokenizer(prefix + text)["input_ids"] for text in rows.source]
        assert [list(target) for target in rows.target_ids] == greedy(large, ids, TARGET_LIMIT, 600)


def refused(ended: Ended, code: int, *words: str) -> None:
    line = ended.last_remark
    assert ended.code == code, ended.err
    assert line.startswith("error: ")
    assert "Traceback" not in ended.err
    for word in words:
        assert word in line


def test_another_request_on_the_same_folder_is_refused(made: Path, tmp_path: Path) -> None:
    def again(*more: str, data: Path = made / "texts.jsonl", models: Path = made) -> Ended:
        return call(*command(models, data, made / "out", "--share", "0.5", *more))

    refused(again("--share", "0.4"), 2, "--share: 0.4", "share = 0.5")
    refused(again("--decode-batch", "900"), 2, "--decode-batch: 900")
    refused(again("--target-limit", "9"), 2, "--target-limit: 9")
    refused(again("--rate", "0.5"), 2, "--rate: 0.5")
    other = shutil.copytree(made / "large", tmp_path / "large")
    refused(again("--large", str(other)), 2, "--large", str(made / "large"))
    refused(again("--small", str(other)), 2, "--small", str(made / "small"))
    refused(again(data=make_texts(tmp_path / "texts.jsonl", 50)), 2, "--data")


@pytest.mark.parametrize("name", ["large", "small", "data"])
def test_the_same_name_with_other_content_is_refused(name: str, made: Path, tmp_path: Path) -> None:
    models = Path(shutil.copytree(made, tmp_path / "models"))
    job = job_of(models, tmp_path / "out", 0.5, max_time=1e-9)
    align(job, quiet)
    # Without a shard the folder would hold nothing, and be anyone's.
    (tmp_path / "out" / "calibration" / "1-train-000000.parquet").touch()
    if name == "data":
        make_texts(models / "texts.jsonl", TEXTS + HELD_OUT, seed=1)
    else:
        save_t5(models / name, gated=True, tied=False, seed=9)
    with pytest.raises(UsageError, match=f"--{name}: .*is not what it was") as caught:
        align(job, quiet)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_aligned_is_told_in_one_line(made: Path, tmp_path: Path) -> None:
    def attempt(*more: str, out: Path = tmp_path / "out") -> Ended:
        return call(*command(made, made / "texts.jsonl", out, *more))

    refused(attempt("--share", "0"), 2, "--share: 0.0")
    refused(attempt("--share", "1.5"), 2, "--share: 1.5")
    refused(attempt("--decode-batch", "0"), 2, "--decode-batch: 0")
    refused(attempt("--large", str(tmp_path / "none")), 3, "--large", "no such folder")
    refused(attempt("--small", str(tmp_path / "none")), 3, "--small", "no such folder")
    other = shutil.copytree(made / "small", tmp_path / "other")
    save_tokenizer(Path(other), ("<pad>", "</s>", "<unk>", "▁the"))
    refused(attempt("--small", str(other)), 3, "--large and --small", "tokenizers differ")
    full = tmp_path / "full"
    full.mkdir()
    (full / "training.json").write_text("{}")
    refused(attempt(out=full), 2, "--out", "holds no alignment")
    assert not (tmp_path / "out").exists()


def test_a_damaged_shard_is_named(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    align(job_of(made, out, 0.5, max_time=1e-9), quiet)
    large, job = large_of(made), job_of(made, out, 0.5)
    decode(large, job, missing(make_plan(job, 0.5, quiet), out), 600, None)
    path = out / "calibration" / "1-train-000000.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    ended = call(*command(made, made / "texts.jsonl", out, "--share", "0.5"))
    refused(ended, 3, str(path), "move it away and run again")


def test_the_seconds_of_a_killed_training_count_up_to_its_newest_checkpoint(made: Path, tmp_path: Path) -> None:
    job, checkpoint = job_of(made, tmp_path), tmp_path / "checkpoints" / "checkpoint-5"
    write_record(tmp_path, {"began": 100.0, "seconds": 7.0})
    note_start(job)
    assert read_record(tmp_path)["seconds"] == 7, "no checkpoint: all of it is done again"
    checkpoint.mkdir(parents=True)
    (checkpoint / "complete").touch()
    write_record(tmp_path, {"began": 100.0, "seconds": 7.0})
    os.utime(checkpoint, (130, 130))
    note_start(job)
    assert read_record(tmp_path)["seconds"] == 37
    note_start(job)
    assert read_record(tmp_path)["seconds"] == 37, "the checkpoint is none of the later call's"


def test_a_lost_line_of_the_time_log_is_passed_over(made: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(made / "out", tmp_path / "out"))
    log = out / "calibration" / "times.jsonl"
    # Two processes side by side from 0 to 10, one more from 20 to 25, and the half line of a killed one.
    log.write_text("\n[0, 6]\n[2, 10]\n[30, 4\n[20, 25]")
    assert cost(out)["seconds"] == 15
