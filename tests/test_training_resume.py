"""Training that is killed, stopped by the clock, or asked for twice, against training in one go: the same weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bild_bench.directories import lock
from bild_bench.errors import DataError, RunError, UsageError
from bild_bench.training.job import RECORD, read_record
from tests.checkpoints import save_t5
from tests.made_data import jsonl
from tests.made_training import TEXTS, texts, trained

ROOT = Path(__file__).resolve().parents[1]
# Every process of the run reads this file: a spawned one does so under another name.
SCRIPT = """
import json, os, signal, sys, time
from pathlib import Path

sys.path.insert(0, {root!r})
import transformers
from bild_bench.training import callbacks
from tests.made_training import trained

STEP, WHEN, DATA, OUT, INIT, RECIPE = json.loads(os.environ["KILLED_TRAINING"])
(Path(OUT).parent / f"process-{{os.getpid()}}").touch()
mark, state_of = callbacks.MarkWhole.on_save, transformers.Trainer._save_rng_state

def kill():
    # Of several processes the parent, which cannot end the others then.
    os.kill(os.getppid() if "RANK" in os.environ else os.getpid(), signal.SIGKILL)
    time.sleep(600)

def on_save(self, args, state, control, **given):
    mark(self, args, state, control, **given)
    if WHEN == "after" and state.global_step == STEP and state.is_world_process_zero:
        kill()

def save_rng_state(self, folder):
    if WHEN == "within" and self.state.global_step == STEP:
        kill()
    state_of(self, folder)

callbacks.MarkWhole.on_save = on_save
transformers.Trainer._save_rng_state = save_rng_state
if __name__ == "__main__":
    trained(Path(DATA), Path(OUT), Path(INIT), **RECIPE)
"""
# 4 batches an epoch: the run goes over several epochs, with two batches per step, and is killed in the middle of one.
LONG = {"steps": 7, "accumulate": 2, "rate": 3e-3}
IN_USE = r"^--out: .*: another process is writing there; wait until it ends, or choose another --out$"
SHARED = {"steps": 3, "processes": 2, "every": 1, "rate": 3e-3, "optimizer": "adamw", "schedule": "linear"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Texts, and a checkpoint with dropout."""
    folder = tmp_path_factory.mktemp("made")
    return texts(folder / "data"), save_t5(folder / "t5")


@pytest.fixture(scope="module")
def unbroken(made: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    out = tmp_path_factory.mktemp("unbroken") / "out"
    trained(made[0], out, made[1], **LONG)
    return weights(out)


def weights(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


def checkpoints(out: Path) -> set[str]:
    return {path.name for path in (out / "checkpoints").iterdir()}


def killed(step: int, when: str, made: tuple[Path, Path], out: Path, recipe: dict[str, Any]) -> None:
    """A run as a process of its own that is killed at a checkpoint."""
    script = out.parent / "script.py"
    script.write_text(SCRIPT.format(root=str(ROOT)))
    asked = json.dumps([step, when, str(made[0]), str(out), str(made[1]), recipe])
    process = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"KILLED_TRAINING": asked, "OMP_NUM_THREADS": "1"},
        cwd=out.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=500,
    )
    assert process.returncode == -signal.SIGKILL
    assert read_record(out)["finished"] is False
    assert not (out / "model.safetensors").exists()


@pytest.mark.parametrize(("when", "left"), [("after", {"complete"}), ("within", set())])
def test_a_killed_run_ends_with_the_weights_of_an_unbroken_one(
    made: tuple[Path, Path], unbroken: bytes, tmp_path: Path, when: str, left: set[str]
) -> None:
    out = tmp_path / "out"
    killed(4, when, made, out, LONG)
    assert checkpoints(out) == {"checkpoint-2", "checkpoint-4"}
    assert {path.name for path in (out / "checkpoints" / "checkpoint-4").iterdir()} & {"complete"} == left
    record = trained(made[0], out, made[1], **LONG)
    assert record["finished"]
    assert weights(out) == unbroken
    assert [entry["step"] for entry in record["history"] if "eval_loss" in entry] == [2, 4, 6, 7]


def test_two_processes_end_with_their_parent_and_go_on_to_the_same_weights(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    killed(2, "after", made, out, SHARED)
    members = [int(path.name.split("-")[1]) for path in tmp_path.glob("process-*")]
    assert len(members) == 3
    give_up = time.monotonic() + 60
    while any(map(alive, members)):
        assert time.monotonic() < give_up
        time.sleep(0.1)
    assert trained(made[0], out, made[1], **SHARED)["finished"]
    whole = trained(made[0], tmp_path / "whole", made[1], **SHARED)
    assert weights(out) == weights(tmp_path / "whole")
    assert whole["trained"]["texts"] == 3 * 2 * 4


def alive(process: int) -> bool:
    try:
        # A dead child that nobody has waited for still has its folder.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_clock_stops_a_run_and_the_same_call_goes_on(
    made: tuple[Path, Path], unbroken: bytes, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for step in range(1, 7):
        record = trained(made[0], out, made[1], max_time=1e-9, **LONG)
        assert not record["finished"]
        assert record["trained"]["steps"] == step
        # What is there so far can be used.
        assert (out / "model.safetensors").is_file()
        assert "eval_loss" in record["history"][-2]
    # Whether there is a limit, and which, is no part of the request.
    assert trained(made[0], out, made[1], **LONG)["finished"]
    assert weights(out) == unbroken


RISING = {"patience": 2, "every": 1, "steps": 12, "optimizer": "adamw", "rate": 0.4, "dropout": 0.0}


def test_early_stopping_keeps_the_best_also_over_interruptions(made: tuple[Path, Path], tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    record = trained(made[0], whole, made[1], **RISING)
    losses = [entry["eval_loss"] for entry in record["history"] if "eval_loss" in entry]
    best = losses.index(min(losses)) + 1
    assert len(losses) == best + 2 < 12
    trained(made[0], tmp_path / "best", made[1], **{**RISING, "patience": None, "steps": best})
    assert weights(whole) == weights(tmp_path / "best")

    for _ in range(12):
        if trained(made[0], out, made[1], max_time=1e-9, **RISING)["finished"]:
            break
    assert weights(out) == weights(whole)
    assert read_record(out)["finished"]
    assert read_record(out)["trained"]["steps"] == best + 2

    # Killed after it had stopped, and before it said so.
    unfinish(whole)
    assert trained(made[0], whole, made[1], **RISING)["finished"]
    assert weights(whole) == weights(out)


def unfinish(out: Path) -> None:
    record = read_record(out)
    (out / RECORD).write_text(json.dumps(record | {"finished": False}))
    (out / "model.safetensors").unlink()


def test_a_run_killed_after_its_last_step_needs_no_other(made: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    trained(made[0], out, made[1], steps=2)
    before = weights(out)
    unfinish(out)
    assert trained(made[0], out, made[1], steps=2)["finished"]
    assert weights(out) == before


def test_what_is_finished_is_left_alone(made: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    record = trained(made[0], out, made[1], steps=1)
    (out / "model.safetensors").write_bytes(b"mine")
    assert trained(made[0], out, made[1], steps=1) == record
    assert weights(out) == b"mine"
    with pytest.raises(UsageError, match=r"^--rate: 0\.5: .* holds a run with rate = 0\.0002"):
        trained(made[0], out, made[1], steps=1, rate=0.5)
    other = texts(tmp_path / "other")
    with pytest.raises(UsageError, match=r"^--data: \['.*other'\]: .* holds a run with data = \['.*data'\]"):
        trained(other, out, made[1], steps=1)
    with pytest.raises(UsageError, match=r"^--init: not given: .* holds a run with init = "):
        trained(made[0], out, None, steps=1)


def test_texts_and_checkpoints_that_have_changed_are_refused(tmp_path: Path) -> None:
    data, init, out = texts(tmp_path / "data"), save_t5(tmp_path / "t5"), tmp_path / "out"
    assert not trained(data, out, init, steps=2, max_time=1e-9)["finished"]
    jsonl(data / "train.jsonl", TEXTS[::-1])
    with pytest.raises(DataError, match=r"^--data: .*the texts have changed since .*out was begun"):
        trained(data, out, init, steps=2)
    texts(data)
    save_t5(init, seed=5)
    with pytest.raises(DataError, match=r"^--init: .*its files have changed since .*out was begun"):
        trained(data, out, init, steps=2)
    save_t5(init)
    assert trained(data, out, init, steps=2)["finished"]


def test_a_folder_that_holds_something_else_or_is_in_use_is_left_alone(made: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match=r"^--out: .*is not empty and holds no training run"):
        trained(made[0], tmp_path / "notes", made[1], steps=1)
    assert not trained(made[0], tmp_path / "out", made[1], steps=2, max_time=1e-9)["finished"]
    with lock(tmp_path / "out"), pytest.raises(RunError, match=IN_USE):
        trained(made[0], tmp_path / "out", made[1], steps=2)
    (tmp_path / "out" / RECORD).write_text("{")
    with pytest.raises(DataError, match=r"^--out: .*training\.json.*cannot be read"):
        trained(made[0], tmp_path / "out", made[1], steps=2)


def test_a_loss_that_is_no_number_ends_the_run_in_one_line(made: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        trained(made[0], tmp_path / "out", made[1], steps=50, every=50, optimizer="adamw", rate=1e30)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("training: 'step 50': the loss is nan; try a lower --rate")
    assert not (tmp_path / "out" / "model.safetensors").exists()
