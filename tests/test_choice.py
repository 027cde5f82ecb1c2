"""Which pair is asked for: presets by task, anyone's own models, and what cannot go together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bild_bench.errors import UsageError
from bild_bench.models.choice import ModelChoice, choose_pair, load_presets

KINDS = {"iwslt17": "translation", "wmt14": "translation", "xsum": "summarization", "cnn_dm": "summarization"}
# Large, small, tokenizer, prefix: mT5 for translation, T5 for summarisation.
PAPER = {
    "iwslt17": ("kssteven/mT5-large-iwslt2017-de-en", "kssteven/mT5-small-iwslt2017-de-en", "google/mt5-small", ""),
    "wmt14": ("kssteven/mT5-large-wmt2014-de-en", "kssteven/mT5-small-wmt2014-de-en", "google/mt5-small", ""),
    "xsum": ("kssteven/T5-large-xsum", "kssteven/T5-small-xsum", "google-t5/t5-small", "summarize: "),
    "cnn_dm": ("kssteven/T5-large-cnndm", "kssteven/T5-small-cnndm", "google-t5/t5-small", "summarize: "),
}


def choose(task: str, **options: Any) -> Any:
    return choose_pair(task, KINDS[task], **options)


def problem_with(task: str, kind: str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        choose_pair(task, kind, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("task", sorted(KINDS))
@pytest.mark.parametrize("preset", [None, "embedded"])
def test_the_embedded_pair_is_the_default(task: str, preset: str | None) -> None:
    choice = choose(task, preset=preset)
    prefix = {"translation": "translate German to English: ", "summarization": "summarize: "}[KINDS[task]]
    assert (choice.label, choice.prefix) == ("embedded-aligned", prefix)
    for model, name in ((choice.large, "large"), (choice.small, "aligned")):
        folder = Path(model.source)
        assert folder.parts[-3:] == ("bild_bench", "embedded", name)
        assert (folder / "model.safetensors").is_file()
        assert model.revision is None


@pytest.mark.parametrize("task", sorted(PAPER))
def test_the_papers_checkpoints(task: str) -> None:
    large, small, tokenizer, prefix = PAPER[task]
    choice = choose(task, preset="paper")
    assert (choice.label, choice.prefix) == ("paper", prefix)
    assert (choice.large.source, choice.small.source) == (large, small)
    assert {choice.large.tokenizer, choice.small.tokenizer} == {tokenizer}
    assert choice.large.tokenizer_revision == choice.small.tokenizer_revision is not None
    assert choice.large.pickled is True


def test_the_embedded_pair_has_a_small_model_that_is_not_aligned() -> None:
    plain, aligned = choose("xsum", aligned=False), choose("xsum", aligned=True)
    assert (plain.label, plain.large) == ("embedded", aligned.large)
    assert Path(plain.small.source).parts[-2:] == ("embedded", "small")
    assert aligned == choose("xsum")


@pytest.mark.parametrize("task", sorted(PAPER))
def test_aligned_exchanges_the_small_model_only(task: str) -> None:
    plain, aligned = choose(task, preset="paper"), choose(task, preset="paper", aligned=True)
    assert aligned.label == "paper-aligned"
    assert (aligned.large, aligned.prefix) == (plain.large, plain.prefix)
    assert aligned.small.source == f"{plain.small.source}-bild-aligned"


@pytest.mark.parametrize(("task", "prefix"), [("iwslt17", "translate German to English: "), ("xsum", "summarize: ")])
def test_flan_is_prompted_and_pinned(task: str, prefix: str) -> None:
    choice = choose(task, preset="flan")
    assert choice.prefix == prefix
    assert (choice.large.source, choice.small.source) == ("google/flan-t5-large", "google/flan-t5-small")
    assert all(len(model.revision) == 40 for model in (choice.large, choice.small))
    assert (choice.large.tokenizer, choice.large.pickled) == (None, False)


@pytest.mark.parametrize("preset", sorted(load_presets()))
@pytest.mark.parametrize("task", sorted(KINDS))
def test_every_preset_has_a_pair_for_every_task(preset: str, task: str) -> None:
    choice = choose(task, preset=preset)
    assert choice.large.source != choice.small.source
    assert choice.notes["prefix"]


@pytest.mark.parametrize("prefix", ["", "translate: "])
def test_a_given_prefix_replaces_the_presets_even_an_empty_one(prefix: str) -> None:
    assert choose("xsum", preset="paper", prefix=prefix).prefix == prefix
    assert choose("xsum", large="a", small="b", prefix=prefix).prefix == prefix


@pytest.mark.parametrize("preset", ["embedded", "paper", "flan"])
def test_custom_takes_the_presets_stand_in_for_its_kind(preset: str) -> None:
    assert choose_pair("custom", "translation", preset=preset) == choose("iwslt17", preset=preset)
    assert choose_pair("custom", "summarization", preset=preset) == choose("xsum", preset=preset)


def test_own_models() -> None:
    choice = choose("xsum", large="models/big/", small="someone/tiny")
    assert (choice.label, choice.prefix) == ("big+tiny", None)
    assert (choice.large, choice.small) == (ModelChoice("models/big/"), ModelChoice("someone/tiny"))


@pytest.mark.parametrize(("role", "label"), [("large", "big"), ("small", "big")])
def test_one_own_model_alone(role: str, label: str) -> None:
    choice = choose("iwslt17", **{role: "models/big"})
    assert choice.label == label
    assert {"large": choice.large, "small": choice.small}[role] == ModelChoice("models/big")
    assert (choice.large is None) is (role == "small")
    assert (choice.small is None) is (role == "large")


@pytest.mark.parametrize(
    "options",
    [
        {"large": "a", "preset": "paper"},
        {"small": "b", "preset": "embedded"},
        {"large": "a", "small": "b", "preset": "nonsense"},
        {"large": "a", "small": "b", "aligned": True},
    ],
)
def test_own_models_are_not_mixed_with_presets(options: dict[str, Any]) -> None:
    message = problem_with("iwslt17", "translation", **options)
    assert "--large/--small" in message
    assert "cannot be mixed with --preset or --aligned; leave one out" in message


def test_aligned_without_an_aligned_model() -> None:
    message = problem_with("iwslt17", "translation", preset="flan", aligned=True)
    assert "this preset has no aligned small model; use --preset embedded or paper, or --no-aligned" in message


@pytest.mark.parametrize(("wrong", "hint"), [("papre", "did you mean 'paper'?"), ("zzz", "choose one of them")])
def test_an_unknown_preset(wrong: str, hint: str) -> None:
    message = problem_with("iwslt17", "translation", preset=wrong)
    assert f"--preset: {wrong!r}: not known (allowed: embedded, flan, paper); {hint}" in message


@pytest.mark.parametrize(
    ("source", "name"), [("google/flan-t5-small", "flan-t5-small"), ("/a/b/", "b"), ("b", "b"), ("./b//", "b")]
)
def test_short_names(source: str, name: str) -> None:
    assert ModelChoice(source).short_name == name


def test_choosing_a_pair_imports_nothing_heavy() -> None:
    check = (
        "import sys; from bild_bench.models.choice import choose_pair; choose_pair('iwslt17', 'translation');"
        "print(sorted({'torch', 'transformers', 'datasets', 'pandas', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
