"""Threads of the native decoder that must share a processor, are lost in a fork, or are called from two sides."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.models.native.library import team_counts
from bild_bench.models.native.session import NativeModel
from tests.checkpoints import VOCABULARY, save_t5
from tests.forward import SOURCE, load, random_tokens
from tests.native_models import compiled

ROOT = Path(__file__).parent.parent
# What each script below begins with: a model, and the scores of one thread.
_BEGIN = """
import os, sys, torch
from bild_bench.models.native.library import team_counts
from tests.forward import SOURCE, random_tokens
from tests.test_native_team import scores, small_model

torch.set_num_threads(1)
model = small_model(sys.argv[1])
alone = scores(model)
torch.set_num_threads(2)
"""


def small_model(folder: str | Path) -> NativeModel:
    return NativeModel(compiled(), load(Path(folder), "float32"), VOCABULARY)


def scores(model: NativeModel) -> torch.Tensor:
    return model.session(model.encode(SOURCE)).extend(random_tokens(20)).logits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiled()
    return save_t5(tmp_path_factory.mktemp("t5"), num_heads=3, d_kv=10, num_decoder_layers=3)


def run_script(folder: Path, script: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", _BEGIN + script, str(folder)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_calls_for_several_threads_are_counted(folder: Path) -> None:
    model, library = small_model(folder), compiled()
    torch.set_num_threads(1)
    before = team_counts(library)
    scores(model)
    assert team_counts(library) == before
    torch.set_num_threads(2)
    scores(model)
    # The encoder, the source's keys and values, the decoder's layers, the scores.
    assert team_counts(library)[0] == before[0] + 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no way to take a processor away")
def test_two_threads_on_one_processor_are_noticed_and_agree_bit_for_bit(folder: Path) -> None:
    script = """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
same = all(torch.equal(scores(model), alone) for _ in range(50))
calls, late = team_counts(model.library)
print(same, calls, late > calls / 2)
"""
    assert run_script(folder, script) == "True 200 True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_a_team_of_its_own(folder: Path) -> None:
    script = """
assert torch.equal(scores(model), alone)
if os.fork() == 0:
    os._exit(0 if torch.equal(scores(model), alone) else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert run_script(folder, script) == "0\n"


def test_calls_from_two_threads_at_once_agree(folder: Path) -> None:
    torch.set_num_threads(1)
    model = small_model(folder)
    alone = scores(model)
    source = model.encode(SOURCE)

    def often(_: int) -> bool:
        torch.set_num_threads(2)
        found: list[Any] = [model.session(source).extend(random_tokens(20)).logits for _ in range(30)]
        return all(torch.equal(logits, alone) for logits in found)

    with ThreadPoolExecutor(2) as both:
        assert list(both.map(often, range(2))) == [True, True]
