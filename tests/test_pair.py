"""A pair: two models that fit together, or one line that says why they do not; texts to ids and back."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.errors import BildBenchError, DataError, UsageError
from bild_bench.models.choice import ModelChoice, PairChoice, choose_pair
from bild_bench.models.pair import Pair, load_pair
from bild_bench.models.positions import Positions
from tests import checkpoints as made
from tests.loading import edit, load

# What the tokenizer of tests/checkpoints.py makes of a word is its place in the list of pieces.
IDS = {piece: index for index, piece in enumerate(made.PIECES)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.save_t5(tmp_path_factory.mktemp("saved") / "t5")


@pytest.fixture(scope="module")
def alone(saved: Path) -> Pair:
    """The large model alone, for tests that change nothing."""
    return load(saved)


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A checkpoint that the test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "small"))


def both(large: Path, small: Path, **options: Any) -> Pair:
    return load_pair(PairChoice("both", ModelChoice(str(large)), ModelChoice(str(small)), ""), device="cpu", **options)


def problem_of(large: Path, small: Path, **options: Any) -> str:
    with pytest.raises(BildBenchError) as caught:
        both(large, small, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def scores(pair: Pair, role: str, tokens: list[int]) -> list[list[float]]:
    limits = pair.limits(20)
    session = pair.session(role, pair.encode(role, pair.tokenise("the dog sees", 50)), limits)
    rows: list[list[float]] = session.extend([limits.start_id, *tokens]).probs().tolist()
    return rows


def test_two_tokenizers_are_refused_and_both_models_named(saved: Path, folder: Path) -> None:
    made.save_tokenizer(folder, pieces=(*made.PIECES, "▁new"))
    message = problem_of(saved, folder)
    assert message.startswith(f"--large and --small: '{saved} and {folder}': their tokenizers differ: 46 and 47 pieces")


def test_another_normaliser_is_refused(saved: Path, folder: Path) -> None:
    made.save_tokenizer(folder, lowercase=True)
    assert "their tokenizers differ: the text " in problem_of(saved, folder)


def test_another_start_token_is_refused(saved: Path, folder: Path) -> None:
    edit(folder, "generation_config.json", decoder_start_token_id=2)
    message = problem_of(saved, folder)
    assert "start=0" in message
    assert "start=2" in message
    assert "start, end and pad ids must be the same" in message


def test_another_end_token_is_refused(saved: Path, folder: Path) -> None:
    edit(folder, "generation_config.json", eos_token_id=[1, 5])
    assert "ends=(1,), pad=0) and SpecialIds(start=0, ends=(1, 5)" in problem_of(saved, folder)


def test_scores_narrower_than_the_tokenizer_are_refused(saved: Path, tmp_path: Path) -> None:
    narrow = made.save_t5(tmp_path / "narrow", vocab_size=made.VOCABULARY - 1)
    assert f"--small: '{narrow}': scores 45 ids, its tokenizer has 46" in problem_of(saved, narrow)


@pytest.mark.parametrize("session", ["fast", "reference"])
def test_models_of_different_widths_fit_and_ids_beyond_the_tokenizer_are_masked(
    saved: Path, tmp_path: Path, session: str
) -> None:
    small = made.save_t5(tmp_path / "exact", vocab_size=made.VOCABULARY, seed=1)
    pair = both(saved, small, session=session)
    for role in ("large", "small"):
        rows = scores(pair, role, [5, 6])
        assert [len(row) for row in rows] == [made.VOCABULARY] * 3
        assert all(abs(sum(row) - 1) < 1e-5 for row in rows)


def test_each_role_is_its_own_model(saved: Path, tmp_path: Path) -> None:
    other = made.save_t5(tmp_path / "other", gated=True, tied=False, num_decoder_layers=1, num_layers=1, seed=1)
    pair, alone = both(saved, other), load(saved)
    assert scores(pair, "large", [5]) == scores(alone, "large", [5])
    assert scores(pair, "small", [5]) != scores(pair, "large", [5])
    described = pair.describe()
    assert (described["large"]["num_decoder_layers"], described["small"]["num_decoder_layers"]) == (2, 1)
    assert described["small"]["name"] == str(other)
    assert described["special_ids"] == {"start": 0, "ends": [1], "pad": 0}


@pytest.mark.parametrize("roles", [["large", "small"], ["small", "large"]])
def test_the_rules_are_the_large_models_in_any_order(saved: Path, folder: Path, roles: list[str]) -> None:
    edit(folder, "generation_config.json", no_repeat_ngram_size=3)
    ruled, plain = ModelChoice(str(folder)), ModelChoice(str(saved))
    for large, small, rules in ((ruled, plain, {"no_repeat_ngram_size": 3}), (plain, ruled, {})):
        pair = load_pair(PairChoice("both", large, small, ""), roles, device="cpu")
        assert pair.describe()["rules"] == rules


def test_parameters_are_the_librarys_count(saved: Path) -> None:
    library = transformers.T5ForConditionalGeneration.from_pretrained(saved)
    described = load(saved).describe()["large"]
    assert described["parameters"] == library.num_parameters()
    assert described["decoder_parameters"] == library.get_decoder().num_parameters()


@pytest.mark.parametrize("role", ["large", "small"])
def test_one_role_alone_reads_one_model(saved: Path, tmp_path: Path, role: str) -> None:
    here, absent = ModelChoice(str(saved)), ModelChoice(str(tmp_path / "absent"))
    choice = PairChoice("one", *((here, absent) if role == "large" else (absent, here)), "")
    pair = load_pair(choice, [role], device="cpu")
    assert list(pair.models) == [role]
    assert len(scores(pair, role, [5, 6])) == 3


def test_a_role_without_a_model_says_which_option_to_add(saved: Path) -> None:
    choice = PairChoice("one", ModelChoice(str(saved)), None, "")
    with pytest.raises(UsageError, match=r"--small: not given: this mode needs a model .*; add --small PATH"):
        load_pair(choice, ["large", "small"], device="cpu")


def test_session_kinds_without_the_native_decoder(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILD_BENCH_NATIVE", "0")
    bart = made.save_bart(tmp_path / "bart")
    kinds = {
        kind: [loaded.model.kind for loaded in both(saved, bart, session=kind).models.values()]
        for kind in ("auto", "reference")
    }
    assert kinds == {"auto": ["fast", "reference"], "reference": ["reference", "reference"]}
    assert load(saved, session="fast").describe()["large"]["session"] == "fast"
    assert "is of type bart; the fast session knows t5, mt5; use --session" in problem_of(saved, bart, session="fast")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"session": "quick"}, "--session: 'quick': not known (allowed: auto, fast, graphs, native, reference)"),
        ({"dtype": "float8"}, "--dtype: 'float8': not known (allowed: bfloat16, float16, float32, float64)"),
    ],
)
def test_unknown_kinds_are_named_before_anything_is_loaded(tmp_path: Path, options: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path / "absent", **options)
    assert words in str(caught.value)


def test_a_text_becomes_ids_with_its_end_token(saved: Path) -> None:
    source = load(saved).tokenise("the dog sees", 50)
    assert source.ids.tolist() == [[IDS["▁the"], IDS["▁dog"], IDS["▁sees"], made.END]]
    assert (source.ids.dtype, source.truncated) == (torch.int64, False)


def test_the_prefix_is_put_before_every_text(saved: Path) -> None:
    with_prefix = load(saved, prefix="a cat ").tokenise("sees", 50).ids.tolist()
    assert with_prefix == load(saved).tokenise("a cat sees", 50).ids.tolist()


@pytest.mark.parametrize(("limit", "kept", "truncated"), [(5, 4, False), (4, 3, True), (2, 1, True), (1, 0, True)])
def test_a_long_text_is_cut_at_the_end_and_keeps_its_end_token(
    saved: Path, limit: int, kept: int, truncated: bool
) -> None:
    source = load(saved).tokenise("the dog sees cat", limit)
    whole = [IDS["▁the"], IDS["▁dog"], IDS["▁sees"], IDS["▁cat"]]
    assert source.ids.tolist() == [[*whole[:kept], made.END]]
    assert source.truncated is truncated


def test_a_cut_text_does_not_shorten_the_next(saved: Path) -> None:
    pair = load(saved)
    assert pair.tokenise("the dog sees cat", 2).ids.shape == (1, 2)
    assert pair.tokenise("the dog sees cat", 50).ids.shape == (1, 5)


def pieces_of(pair: Pair, ids: list[int]) -> list[str]:
    return [pair.piece(ids[:index], token) for index, token in enumerate(ids)]


def test_pieces_name_special_tokens_and_text_leaves_them_out(saved: Path) -> None:
    pair, ids = load(saved), [IDS["▁the"], IDS["▁dog"], IDS["d"], IDS["<unk>"], IDS["▁runs"], made.END]
    assert pieces_of(pair, ids) == ["the", " dog", "d", "<unk>", " runs", "</s>"]
    assert pair.text(ids) == "the dogd runs"
    assert pair.text([]) == ""
    assert pair.text([made.END]) == ""


@given(ids=st.lists(st.integers(3, made.VOCABULARY - 1), max_size=12))
@settings(max_examples=50, deadline=None)
def test_the_pieces_of_any_ids_join_to_their_text(alone: Pair, ids: list[int]) -> None:
    assert "".join(pieces_of(alone, ids)).strip() == alone.text(ids)


def save_byte_level(folder: Path) -> Path:
    """BART's kind of tokenizer: a piece may be a part of a character."""
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    special, alphabet = ["<pad>", "</s>", "<unk>"], tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=270, special_tokens=special, initial_alphabet=alphabet)
    backend.train_from_iterator(["the dog runs", "a cat"] * 5, trainer)
    marks = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **marks).save_pretrained(folder)
    return folder


def test_a_character_of_several_tokens_is_shown_with_its_last_one(tmp_path: Path) -> None:
    pair = load(save_byte_level(made.save_bart(tmp_path / "bart", vocab_size=300)))
    text = "the dog ünder ✂ or 🙂 runs"
    ids = pair.tokenise(text, 100).ids[0].tolist()
    pieces = pieces_of(pair, ids)
    assert "".join(pieces) == text == pair.text(ids)
    assert [piece for piece in pieces if piece in "ü✂🙂" and piece] == ["ü", "✂", "🙂"]
    assert pieces.count("") == 1 + 2 + 3  # UTF-8 takes 2, 3 and 4 bytes for these


def test_the_embedded_pair_fits_together_and_carries_german_through() -> None:
    pair = load_pair(choose_pair("iwslt17", "translation"), device="cpu")
    assert list(pair.models) == ["large", "small"]
    text = "Die müde Straßenbahn grüßt zwei Hunde."
    assert pair.text(pair.tokenise(text, 100).ids[0].tolist()) == f"translate German to English: {text}"


def test_errors_of_the_small_model_name_the_small_model(saved: Path, folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match=re.escape(f"--small: '{folder}'")):
        both(saved, folder)


# --- the models' positions


def test_longer_sources_and_texts_than_a_model_has_positions_for_are_cut(tmp_path: Path) -> None:
    pair = both(
        *(made.save_bart(tmp_path / name, max_position_embeddings=count) for name, count in (("a", 40), ("b", 12)))
    )
    assert pair.positions == Positions(12, 12)
    source = pair.tokenise("the dog sees " * 20, 50)
    assert (source.ids.shape, source.truncated) == ((1, 12), True)
    assert source.ids[0, -1] == pair.tokenise("the dog", 50).ids[0, -1]
    limits = pair.limits(50)
    session = pair.session("small", pair.encode("small", source), limits)
    assert len(session.extend([limits.start_id] * limits.max_tokens)) == 12


def test_t5_has_no_end_of_positions(alone: Pair) -> None:
    assert (alone.positions, alone.limits(5000).max_tokens) == (Positions(None, None), 5000)
