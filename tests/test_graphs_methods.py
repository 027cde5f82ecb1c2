"""Methods on the graphs session: the ids, counters and rules of the reference session, and which models get it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.decoding.picking import Sampling
from bild_bench.decoding.sampling import Sampler
from bild_bench.errors import DataError
from bild_bench.models import opened
from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.fast import FastModel
from bild_bench.models.graphs.session import GraphModel
from bild_bench.models.opened import open_model
from bild_bench.models.pair import Pair, load_pair
from tests.checkpoints import VOCABULARY, save_bart, save_mt5, save_t5
from tests.forward import load
from tests.method_pairs import TEXTS, decode, limits_of
from tests.recorded import FakeCapture

LONG = "the dog sees a cat near the house, a woman reads, " * 3


def both(large: Path, small: Path, session: str) -> Pair:
    choice = PairChoice("made", ModelChoice(str(large)), ModelChoice(str(small)), "")
    return load_pair(choice, device="cpu", dtype="float64", session=session)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, Pair]:
    """One pair by the graphs session, replayed from recorded captures, and by the library's modules."""
    large = save_t5(tmp_path_factory.mktemp("large"), gated=True, tied=False, num_decoder_layers=3)
    small = save_t5(tmp_path_factory.mktemp("small"), seed=7)
    pair = both(large, small, "graphs")
    for loaded in pair.models.values():
        assert isinstance(loaded.model, GraphModel)
        loaded.model._capture, loaded.model.why_eager = FakeCapture(), None
    return pair, both(large, small, "reference")


METHODS: list[tuple[str, Mapping[str, Any]]] = [
    ("vanilla", {}),
    ("small", {}),
    ("bild", {"alpha_fb": 0.3, "alpha_rb": 2.0}),
    ("bild", {"alpha_fb": 0.0, "alpha_rb": 4.0, "max_draft": 7}),
    ("bild", {"alpha_fb": 0.0, "alpha_rb": 6.0, "verify_tail": True}),  # all of it drafted, then tested at once
    ("bild", {"alpha_fb": 0.2, "alpha_rb": math.inf, "first": "large"}),
    ("speculative", {"gamma": 3}),
    ("speculative", {"gamma": 5, "adaptive": True}),
    ("oracle", {"replace_below": 0.1}),
]


@pytest.mark.parametrize("text", [*TEXTS, LONG])
@pytest.mark.parametrize(("mode", "how"), METHODS)
def test_ids_and_counters_are_the_references(
    pairs: tuple[Pair, Pair], mode: str, how: Mapping[str, Any], text: str
) -> None:
    ours, theirs = pairs
    # One limit is within a block of the cache, one beyond; an id that nobody chooses: only the limit ends a text.
    for limits in (limits_of(20), limits_of(100, VOCABULARY)):
        found, expected = (decode(pair, mode, how, limits, text) for pair in (ours, theirs))
        assert found.tokens == expected.tokens
        assert found.counters == expected.counters


@pytest.mark.parametrize("mode", ["vanilla", "bild", "speculative"])
def test_draws_are_the_references(pairs: tuple[Pair, Pair], mode: str) -> None:
    sampling = Sampling(temperature=1.3, top_p=0.9)
    for seed in range(3):
        found, expected = (decode(pair, mode, {}, limits_of(30), picker=Sampler(sampling, seed)) for pair in pairs)
        assert found.tokens == expected.tokens


@pytest.mark.parametrize(
    ("mode", "how"), [("calm", {"threshold": 0.6}), ("bild-early-exit", {"exit_layer": 1, "alpha_fb": 0.3})]
)
def test_methods_that_run_single_layers_use_the_fast_model_behind(
    pairs: tuple[Pair, Pair], mode: str, how: Mapping[str, Any]
) -> None:
    ours, _ = pairs
    model = ours.models["large"].model
    assert isinstance(model, GraphModel)
    fast = replace(ours, models={"large": replace(ours.models["large"], model=model.fast)})
    found, expected = (decode(pair, mode, how, limits_of(40)) for pair in (ours, fast))
    assert found == expected


def test_rules_of_the_checkpoint_hold(tmp_path: Path) -> None:
    rules = {"min_new_tokens": 4, "no_repeat_ngram_size": 2, "suppress_tokens": [5, 9]}
    folder = save_mt5(tmp_path, rules=rules)
    choice = PairChoice("made", ModelChoice(str(folder)), None, "")
    found = [
        decode(load_pair(choice, ["large"], device="cpu", dtype="float64", session=kind), "vanilla", {}, limits_of(25))
        for kind in ("graphs", "reference")
    ]
    assert found[0].tokens == found[1].tokens


def test_the_limit_is_the_room_that_a_session_starts_with(pairs: tuple[Pair, Pair]) -> None:
    ours, _ = pairs
    model = ours.models["large"].model
    assert isinstance(model, GraphModel)
    source = ours.tokenise(TEXTS[0], 50)
    session: Any = ours.session("large", ours.encode("large", source), limits_of(300))
    # The start token, 300 tokens, and padding of 16, in blocks of 64.
    assert session._slot.buffers.capacity == 320


def test_the_record_says_graphs_and_why_not_where_they_are_not(tmp_path: Path) -> None:
    pair = both(save_t5(tmp_path / "large"), save_t5(tmp_path / "small", seed=3), "graphs")
    for description in (pair.describe()["large"], pair.describe()["small"]):
        assert description["session"] == "graphs-eager"
        assert description["session_not_captured"] == "no CUDA graphs on cpu"


class OnCuda:
    """A library model that says it is on a GPU."""

    device = torch.device("cuda")

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def test_a_gpu_gets_graphs_unless_another_session_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "native_library", None)  # never looked for
    folder = save_t5(tmp_path)
    checkpoint = find_checkpoint(ModelChoice(str(folder)), "--large", lambda line: None)

    def kind(session: str) -> Any:
        model, _ = open_model(checkpoint, OnCuda(load(folder, "float32")), VOCABULARY, 0, session, "--large")
        return type(model)

    assert kind("auto") is GraphModel
    assert kind("graphs") is GraphModel
    assert kind("fast") is FastModel


def test_another_architecture_has_no_graphs(tmp_path: Path) -> None:
    folder = save_bart(tmp_path)
    choice = PairChoice("made", ModelChoice(str(folder)), None, "")
    with pytest.raises(DataError, match="is of type bart; the graphs session knows t5, mt5; use --session reference"):
        load_pair(choice, ["large"], device="cpu", session="graphs")
