"""Texts decoded by the native session are, id by id, those of the reference session."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bild_bench
from bild_bench.decoding.records import Decoded
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.pair import Pair, load_pair
from tests.checkpoints import save_mt5, save_t5
from tests.method_pairs import TEXTS, decode
from tests.native_models import compiled

EMBEDDED = Path(bild_bench.__file__).parent / "embedded"
SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "models"
SENTENCES = [json.loads(line)["source"] for line in (EMBEDDED / "data" / "de_en.jsonl").read_text("utf-8").splitlines()]
KINDS: dict[str, Callable[..., Path]] = {
    "T5 1.0": save_t5,
    "T5 1.1": partial(save_t5, gated=True, tied=False),
    "tied and gated": partial(save_t5, gated=True),
    "mT5": save_mt5,
}
MODES: dict[str, dict[str, Any]] = {"vanilla": {}, "small": {}, "bild": {}, "speculative": {}}


@pytest.fixture(autouse=True)
def native() -> None:
    compiled()


def loaded(large: Path, small: Path, session: str) -> Pair:
    choice = PairChoice("made", ModelChoice(str(large)), ModelChoice(str(small)), "")
    return load_pair(choice, device="cpu", session=session)


def what_counts(found: Decoded) -> tuple[Any, ...]:
    return found.tokens, found.hit_limit, found.counters


def assert_same_texts(large: Path, small: Path, texts: tuple[str, ...], length: int) -> None:
    pairs = [loaded(large, small, session) for session in ("native", "reference")]
    assert [pair.models["large"].model.kind for pair in pairs] == ["native", "reference"]
    for mode, settings in MODES.items():
        for text in texts:
            ours, theirs = (decode(pair, mode, settings, pair.limits(length), text) for pair in pairs)
            assert what_counts(ours) == what_counts(theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_of_random_checkpoints(kind: str, tmp_path: Path) -> None:
    large = KINDS[kind](tmp_path / "large", seed=1, num_decoder_layers=3)
    small = KINDS[kind](tmp_path / "small", seed=2, num_decoder_layers=1)
    assert_same_texts(large, small, TEXTS, 30)


def test_of_the_embedded_pair() -> None:
    assert_same_texts(EMBEDDED / "large", EMBEDDED / "small", tuple(SENTENCES[:6]), 60)


def test_of_a_trained_pair() -> None:
    if not SHARED.is_dir():
        pytest.skip("the trained checkpoints are not beside this checkout")
    large, small = SHARED / "multi30k-large", SHARED / "multi30k-small"
    assert_same_texts(large, small, tuple(SENTENCES[6:12]), 60)


@pytest.mark.parametrize(
    ("mode", "settings"), [("calm", {"threshold": 0.5}), ("bild-early-exit", {"exit_layer": 2, "alpha_fb": 0.5})]
)
def test_of_methods_that_run_some_layers_are_those_of_the_fast_session(mode: str, settings: dict[str, Any]) -> None:
    pairs = [loaded(EMBEDDED / "large", EMBEDDED / "small", session) for session in ("native", "fast")]
    for text in SENTENCES[:4]:
        ours, theirs = (decode(pair, mode, settings, pair.limits(40), text) for pair in pairs)
        assert what_counts(ours) == what_counts(theirs)
        assert ours.exit_layers == theirs.exit_layers
