"""The native session as machines with narrower vectors have it, compiled for them here."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.models.native.build import native_library
from bild_bench.models.native.session import NativeModel
from tests.checkpoints import VOCABULARY, save_t5
from tests.forward import SOURCE, library_logits, load, random_tokens
from tests.native_models import assert_near, in_blocks

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or shutil.which("g++") is None, reason="needs g++ on x86"
)
NARROWER = {"8 lanes": "g++ -mno-avx512f", "4 lanes, no joined products": "g++ -mno-avx"}


@pytest.fixture(scope="module", params=NARROWER)
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Compiled once per machine, as the usual one is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", NARROWER[request.param])
        found = native_library()
        assert found.problem is None
        yield found.library


# Some heads that fill vectors, and nothing that does.
@pytest.fixture(scope="module", params=[(4, 8, 32, 64), (3, 10, 37, 53), (5, 24, 176, 600)])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    heads, d_kv, d_model, d_ff = request.param
    save = partial(save_t5, gated=True, num_heads=heads, d_kv=d_kv, d_model=d_model, d_ff=d_ff)
    return save(tmp_path_factory.mktemp("t5"))


def test_scores_are_the_librarys(library: Any, folder: Path) -> None:
    tokens = random_tokens(70)
    expected = library_logits(load(folder, "float64"), SOURCE, tokens)
    rounding = (library_logits(load(folder, "float32"), SOURCE, tokens) - expected).abs().max()
    model = NativeModel(library, load(folder, "float32"), VOCABULARY)
    rows = model.session(model.encode(SOURCE)).extend(tokens)
    assert_near(rows.logits, expected, float(rounding))


def test_blocks_single_tokens_and_threads_agree_bit_for_bit(library: Any, folder: Path) -> None:
    model, tokens = NativeModel(library, load(folder, "float32"), VOCABULARY), random_tokens(40)
    source = model.encode(SOURCE)
    singly = in_blocks(model.session(source), tokens, [1] * 40)
    for threads, sizes in ((1, [40]), (2, [2, 3, 4, 5, 6, 7, 8, 5]), (3, [9, 17, 14])):
        torch.set_num_threads(threads)
        assert torch.equal(model.encode(SOURCE).states, source.states)
        assert torch.equal(in_blocks(model.session(source), tokens, sizes), singly)


def test_it_is_not_the_usual_library(library: Any) -> None:
    assert os.environ["CXX"] in NARROWER.values()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CXX")
        assert native_library().library is not library
