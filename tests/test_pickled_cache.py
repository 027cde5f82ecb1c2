"""Converted checkpoints in the cache: whole or not there, whatever happens to the process or the disk."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file

from bild_bench.errors import RunError
from bild_bench.models import pickled
from bild_bench.models.cache import cache_folder
from tests import checkpoints as made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint with pickled weights only."""
    monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path / "cache"))
    folder = made.save_t5(tmp_path / "model")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def convert(folder: Path) -> Path:
    return pickled.converted(str(folder), folder, "--large", lambda line: None)[0]


def leftovers(tmp_path: Path) -> list[str]:
    return sorted(os.listdir(tmp_path / "cache" / "converted"))


# Dies by SIGKILL as soon as the weights are written, before the checkpoint is whole.
_KILLED = """
import os, signal, sys
from pathlib import Path
import safetensors.torch
from bild_bench.models import pickled
from bild_bench.models.cache import cache_folder
save = safetensors.torch.save_file
def save_and_die(*args, **options):
    save(*args, **options)
    os.kill(os.getpid(), signal.SIGKILL)
safetensors.torch.save_file = save_and_die
pickled.converted("model", Path(sys.argv[1]), "--large", lambda line: None)
"""


def test_a_conversion_killed_half_way_leaves_no_checkpoint_and_the_next_one_works(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(folder)], env=os.environ, check=False, timeout=120)
    assert done.returncode == -9
    assert all(name.startswith("unfinished-") for name in leftovers(tmp_path))
    assert leftovers(tmp_path) != []
    whole = convert(folder)
    assert (whole / "conversion.json").is_file()
    assert load_file(whole / "model.safetensors").keys() >= {"shared.weight"}


def test_an_interrupted_conversion_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(safetensors.torch, "save_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert(folder)
    assert leftovers(tmp_path) == []


def test_a_full_disk_is_named_and_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(RunError, match=r"BILD_BENCH_CACHE: .*No space left on device.*free some space") as caught:
        convert(folder)
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(RunError, match=r"BILD_BENCH_CACHE: .*file.*cannot be written"):
        convert(folder)


def test_two_processes_that_convert_the_same_agree(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = safetensors.torch.save_file

    def another_is_faster(*args: Any, **options: Any) -> None:
        monkeypatch.setattr(safetensors.torch, "save_file", save)
        convert(folder)
        save(*args, **options)

    monkeypatch.setattr(safetensors.torch, "save_file", another_is_faster)
    first = convert(folder)
    assert leftovers(tmp_path) == [first.name]
    assert (first / "conversion.json").is_file()


def test_the_cache_lies_in_the_home_folder_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BILD_BENCH_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "bild-bench"
    monkeypatch.setenv("BILD_BENCH_CACHE", "")
    assert cache_folder() == tmp_path / ".cache" / "bild-bench", "an empty variable is none"
    monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path / "other"))
    assert cache_folder() == tmp_path / "other"


def test_a_converted_checkpoint_that_was_cut_or_is_somebody_elses_is_made_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = convert(folder)
    expected = (whole / "model.safetensors").read_bytes()
    os.truncate(whole / "model.safetensors", 1000)
    assert (convert(folder) / "model.safetensors").read_bytes() == expected
    (whole / "config.json").chmod(0o666)
    assert stat.S_IMODE((convert(folder) / "config.json").stat().st_mode) == 0o600
    (whole / "model.safetensors").rename(tmp_path / "planted")
    (whole / "model.safetensors").symlink_to(tmp_path / "planted")
    assert not (convert(folder) / "model.safetensors").is_symlink()
    assert leftovers(tmp_path) == [whole.name]


def test_what_killed_conversions_left_goes_after_a_day(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "converted"
    for name, age in (("unfinished-old", 90_000), ("unfinished-now", 10)):
        (cache / name / "checkpoint").mkdir(parents=True)
        os.utime(cache / name, (time.time() - age,) * 2)
    whole = convert(folder)
    assert leftovers(tmp_path) == sorted([whole.name, "unfinished-now"])


def test_a_folder_without_the_small_files_keeps_only_weights(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copyfile(folder / "pytorch_model.bin", bare / "pytorch_model.bin")
    assert sorted(path.name for path in convert(bare).iterdir()) == ["conversion.json", "model.safetensors"]
