"""A peer does what its label says, whatever the checkpoint's settings are; what was dropped is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers.generation import AssistedCandidateGenerator, PromptLookupCandidateGenerator

from bild_bench.models.pair import Pair
from bild_bench.training.greedy import greedy, load_large
from tests.checkpoints import WIDTH, save_bart, save_t5
from tests.loading import edit
from tests.method_pairs import TEXTS, decode, load_both

# Each was in some published or hand-edited generation_config.json.
LEAKS: dict[str, dict[str, Any]] = {
    "outputs": {"return_dict_in_generate": True, "output_attentions": True, "output_scores": True},
    "no cache": {"use_cache": False},
    "a static cache": {"cache_implementation": "static"},
    "prompt lookup": {"prompt_lookup_num_tokens": 3},
    "several results": {"num_return_sequences": 3},
    "several results of beams": {"num_return_sequences": 3, "num_beams": 4},
    "contrastive search": {"penalty_alpha": 0.6, "top_k": 4},
    "sampling": {"do_sample": True, "temperature": 5.0, "top_k": 9},
    "an assistant's settings": {"assistant_early_exit": 1, "num_assistant_tokens": 1},
    "a time limit": {"max_time": 0.001},
    "a value of another type": {"num_beams": "4"},
}


def made(folder: Path, **settings: Any) -> Pair:
    folders = [
        save_bart(folder / name, seed=seed, vocab_size=width)
        for name, seed, width in (("large", 1, WIDTH), ("small", 2, WIDTH + 8))
    ]
    for each in folders:
        edit(each, "generation_config.json", **settings)
    return load_both(*folders, library=("large", "small"))


@contextmanager
def forward_calls(pair: Pair) -> Iterator[list[tuple[str, int]]]:
    """Which library models run meanwhile, and over how many tokens at once."""
    calls: list[tuple[str, int]] = []
    hooks = [
        model.register_forward_pre_hook(
            lambda _, args, kwargs, role=role: calls.append((role, kwargs["decoder_input_ids"].shape[1])),
            with_kwargs=True,
        )
        for role, model in pair.library.items()
    ]
    yield calls
    for hook in hooks:
        hook.remove()


def assisted(pair: Pair, text: str) -> tuple[tuple[int, ...], list[tuple[str, int]]]:
    """The text by hf-assisted, and the passes that were made for it."""
    with forward_calls(pair) as calls:
        found = decode(pair, "hf-assisted", {"assistant_tokens": 4, "assistant_confidence": 0.0}, pair.limits(20), text)
    return found.tokens, calls


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return made(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("leak", LEAKS)
def test_a_peer_is_greedy_or_assisted_and_cached_whatever_the_file_says(leak: str, plain: Pair, tmp_path: Path) -> None:
    pair = made(tmp_path, **LEAKS[leak])
    assert pair.describe()["large"]["peer_settings_dropped"] == LEAKS[leak]
    assert pair.describe()["small"]["peer_settings_dropped"] == LEAKS[leak]
    for text in TEXTS:
        expected = decode(pair, "vanilla", {}, pair.limits(20), text).tokens
        with forward_calls(pair) as calls:
            assert decode(pair, "hf-greedy", {}, pair.limits(20), text).tokens == expected
        assert calls == [("large", 1)] * len(expected), "one token a pass: that is greedy, and cached"
        tokens, calls = assisted(pair, text)
        assert tokens == expected
        assert calls == assisted(plain, text)[1], "the passes of a checkpoint that sets nothing"
        assert max(count for role, count in calls if role == "large") == 5, "four drafts, and the token before them"


def test_settings_that_say_nothing_are_not_listed(tmp_path: Path) -> None:
    pair = made(tmp_path, num_beams=1, do_sample=False, use_cache=True, temperature=1.0, max_length=20, min_length=3)
    assert pair.describe()["large"]["peer_settings_dropped"] == {}


def test_no_other_method_runs_under_a_peers_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = made(tmp_path, prompt_lookup_num_tokens=3)
    used: list[str] = []
    for kind in (AssistedCandidateGenerator, PromptLookupCandidateGenerator):
        get = kind.get_candidates
        monkeypatch.setattr(
            kind,
            "get_candidates",
            lambda self, *args, get=get, **options: (used.append(type(self).__name__), get(self, *args, **options))[1],
        )
    decode(pair, "hf-greedy", {}, pair.limits(12))
    assert used == []
    decode(pair, "hf-assisted", {}, pair.limits(12))
    assert set(used) == {"AssistedCandidateGenerator"}


def test_rules_are_kept_and_are_the_large_models(tmp_path: Path) -> None:
    large = save_bart(tmp_path / "large", seed=1, rules={"no_repeat_ngram_size": 2, "num_beams": 4})
    small = save_bart(tmp_path / "small", seed=2, rules={"suppress_tokens": [5]})
    pair = load_both(large, small, library=("large", "small"))
    for model in pair.library.values():
        found = model.generation_config
        assert (found.no_repeat_ngram_size, found.suppress_tokens, found.num_beams) == (2, None, 1)
        assert (found.decoder_start_token_id, found.eos_token_id, found.pad_token_id) == (0, [1], 0)
    expected = decode(pair, "vanilla", {}, pair.limits(20)).tokens
    assert decode(pair, "hf-assisted", {}, pair.limits(20)).tokens == expected


@pytest.mark.parametrize("tied", [True, False])
def test_heads_that_are_padded_differently_are_cut_to_the_tokenizers_ids(tied: bool, tmp_path: Path) -> None:
    large = save_t5(tmp_path / "large", seed=1, gated=True, tied=tied)
    small = save_t5(tmp_path / "small", seed=2, gated=True, tied=tied, vocab_size=WIDTH + 8)
    pair = load_both(large, small, library=("large", "small"))
    for model, width in ((pair.library["large"], WIDTH), (pair.library["small"], WIDTH + 8)):
        assert model.get_output_embeddings().weight.shape[0] == model.config.vocab_size == WIDTH - 8
        assert model.get_input_embeddings().weight.shape[0] == width, "what is read stays as it was"
    for text in TEXTS:
        expected = decode(pair, "vanilla", {}, pair.limits(20), text).tokens
        assert decode(pair, "hf-assisted", {"assistant_tokens": 3}, pair.limits(20), text).tokens == expected


def test_a_decoder_deeper_than_its_encoder_is_no_failure_of_a_peer(tmp_path: Path) -> None:
    large = save_t5(tmp_path / "large", seed=1, num_layers=1, num_decoder_layers=3)
    small = save_t5(tmp_path / "small", seed=2, num_layers=1, num_decoder_layers=2)
    pair = load_both(large, small, library=("large", "small"))
    expected = decode(pair, "vanilla", {}, pair.limits(20)).tokens
    for mode in ("hf-greedy", "hf-assisted"):
        assert decode(pair, mode, {}, pair.limits(20)).tokens == expected


def test_alignment_decodes_greedily_whatever_the_file_says(tmp_path: Path) -> None:
    transformers.logging.set_verbosity_error()
    plain, other = save_bart(tmp_path / "plain", seed=1), save_bart(tmp_path / "other", seed=1)
    settings = {**LEAKS["outputs"], **LEAKS["several results of beams"], **LEAKS["sampling"], "use_cache": False}
    edit(other, "generation_config.json", **settings)
    sources = [[5, 9, 30, 1], [8, 7, 1]]
    expected, found = (
        greedy(load_large(str(folder), lambda line: None), sources, 12, 1000) for folder in (plain, other)
    )
    assert found == expected
    assert len(expected) == 2
