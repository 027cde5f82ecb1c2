"""`align` killed in both halves: the files that it leaves in the end are those of a run that was not."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import call, start
from tests.made_alignment import HELD_OUT, command, make_pair, make_texts

TRAINED = 1500  # three shards


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Models, texts, and what an unbroken run made of them."""
    folder = tmp_path_factory.mktemp("made")
    models, data, out = make_pair(folder), make_texts(folder / "texts.jsonl", TRAINED + HELD_OUT), folder / "unbroken"
    ended = call(*command(models, data, out))
    assert ended.code == 0, ended.err
    return models, data, out


def shards(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "calibration").glob("*.parquet")}


def kill_once(ready: Callable[[], bool], arguments: tuple[str, ...], folder: Path) -> None:
    process = start(*arguments, cwd=folder)
    try:
        give_up = time.monotonic() + 300
        while not ready():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_a_run_killed_in_both_halves_ends_as_one_that_is_not(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    models, data, unbroken = made
    out = tmp_path / "out"
    arguments = command(models, data, out)

    kill_once(lambda: (out / "calibration" / "1-train-000000.parquet").is_file(), arguments, tmp_path)
    first = shards(out)
    assert 2 <= len(first) < len(shards(unbroken)) == 4
    assert not (out / "training.json").exists()

    kill_once(lambda: any(out.glob("checkpoints/*/complete")), arguments, tmp_path)
    assert shards(out) == shards(unbroken)
    assert first.items() < shards(out).items()
    assert not (out / "model.safetensors").exists()
    assert not json.loads((out / "alignment.json").read_text())["finished"]

    ended = call(*arguments)
    assert ended.code == 0, ended.err
    assert "to decode" not in ended.err
    assert shards(out) == shards(unbroken)
    assert (out / "model.safetensors").read_bytes() == (unbroken / "model.safetensors").read_bytes()
    records = [json.loads((folder / "alignment.json").read_text()) for folder in (out, unbroken)]
    for record in records:
        assert record["decoding"].pop("seconds") > 0
        assert record["training"].pop("seconds") > 0
        del record["command"]
    assert records[0] == records[1]
    assert records[0]["finished"]
