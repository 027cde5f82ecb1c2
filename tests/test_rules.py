"""Rules of a generation_config: our greedy text under them is the library's own; unsupported ones are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.decoding.alone import AloneSettings, vanilla
from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import generated_tokens
from bild_bench.decoding.session import Sessions
from bild_bench.errors import DataError
from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.pair import Pair, load_pair
from bild_bench.models.rules import GenerationRules, read_rules
from bild_bench.models.settings import check_settings
from tests.checkpoints import END, PAD, VOCABULARY, save_bart, save_marian, save_mt5, save_pegasus
from tests.forward import assert_near, load
from tests.loading import edit

TEXT = "the man sees a dog near the house"
SEED = 4
LENGTH = 16


def pair_of(large: Path, small: Path | None = None) -> Pair:
    choice = PairChoice("test", ModelChoice(str(large)), None if small is None else ModelChoice(str(small)), "")
    return load_pair(choice, ("large",) if small is None else ("large", "small"), device="cpu", dtype="float64")


def ours(pair: Pair, length: int = LENGTH) -> tuple[int, ...]:
    limits, source = pair.limits(length), pair.tokenise(TEXT, 64)
    session = pair.session("large", pair.encode("large", source), limits)
    return vanilla(Sessions(large=session), AloneSettings(), limits, Greedy()).tokens


def librarys(folder: Path, pair: Pair, length: int = LENGTH, rules: Mapping[str, Any] | None = None) -> tuple[int, ...]:
    """The ids of the library's own greedy `generate`, which reads the rules from the checkpoint itself."""
    model = load(folder, "float64")
    model.generation_config.update(**(rules or {}))
    source = pair.tokenise(TEXT, 64).ids
    output = model.generate(source, max_new_tokens=length, num_beams=1, do_sample=False)
    return generated_tokens(output[0].tolist(), pair.limits(length))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, ...]:
    """The text without any rule."""
    return ours(pair_of(save_bart(tmp_path_factory.mktemp("plain"), seed=SEED, vocab_size=VOCABULARY)))


# What each rule should say depends on the text without it: only then can the rule change anything. The fourth token
# as the end token is wanted after three, which both minimum lengths just forbid.
RULES: dict[str, Callable[[tuple[int, ...]], dict[str, Any]]] = {
    "min_length": lambda text: {"eos_token_id": text[3], "min_length": 5},
    "min_new_tokens": lambda text: {"eos_token_id": text[3], "min_new_tokens": 4},
    "no_repeat_ngram_size 1": lambda text: {"no_repeat_ngram_size": 1},
    "no_repeat_ngram_size 3": lambda text: {"no_repeat_ngram_size": 3},
    "bad_words_ids": lambda text: {"bad_words_ids": [[text[0]], list(text[2:4])]},
    "suppress_tokens": lambda text: {"suppress_tokens": sorted(set(text))},
    "begin_suppress_tokens": lambda text: {"begin_suppress_tokens": [text[0], END]},
    "forced_bos_token_id": lambda text: {"forced_bos_token_id": 9},
    "forced_bos_token_id 0": lambda text: {"forced_bos_token_id": 0},
    "forced_eos_token_id": lambda text: {"forced_eos_token_id": END},
    "forced and suppressed at the beginning": lambda text: {
        "forced_bos_token_id": text[0],
        "begin_suppress_tokens": [text[1]],
    },
    "repetition_penalty": lambda text: {"repetition_penalty": 3.0},
    "encoder_repetition_penalty": lambda text: {"encoder_repetition_penalty": 50.0},
    "encoder_no_repeat_ngram_size": lambda text: {"encoder_no_repeat_ngram_size": 1, "suppress_tokens": [text[0]]},
    "sequence_bias": lambda text: {"sequence_bias": [[[text[0]], -9.5], [[9, 8], 7.0]]},
    "exponential_decay_length_penalty": lambda text: {"exponential_decay_length_penalty": [3, 5.0]},
    "as opus-mt": lambda text: {"bad_words_ids": [[text[0]]], "forced_eos_token_id": END, "num_beams": 4},
    "as bart-large-cnn": lambda text: {
        "forced_bos_token_id": 9,
        "forced_eos_token_id": END,
        "no_repeat_ngram_size": 3,
        "min_length": 12,
        "eos_token_id": text[3],
        "num_beams": 4,
        "length_penalty": 2.0,
        "early_stopping": True,
    },
}


@pytest.mark.parametrize("rule", RULES)
def test_the_text_under_a_rule_is_the_librarys(rule: str, plain: tuple[int, ...], tmp_path: Path) -> None:
    rules = RULES[rule](plain)
    pair = pair_of(save_bart(tmp_path, seed=SEED, rules=rules, vocab_size=VOCABULARY))
    unruled = generated_tokens(plain, pair.limits(LENGTH))
    assert ours(pair) == librarys(tmp_path, pair)
    assert ours(pair) != unruled


@pytest.mark.parametrize("save", [save_marian, save_pegasus, save_mt5])
def test_the_text_under_rules_is_the_librarys_for_other_architectures(
    save: Callable[..., Path], tmp_path: Path
) -> None:
    rules = {"no_repeat_ngram_size": 2, "forced_eos_token_id": END, "suppress_tokens": [3, 4]}
    pair = pair_of(save(tmp_path, seed=SEED, rules=rules, vocab_size=VOCABULARY))
    assert ours(pair) == librarys(tmp_path, pair)
    assert ours(pair, 1) == (END,)


def test_the_large_models_rules_hold_for_the_small_one(tmp_path: Path) -> None:
    rules = {"no_repeat_ngram_size": 2, "suppress_tokens": [5, 6]}
    large = save_bart(tmp_path / "large", seed=SEED, rules=rules, vocab_size=VOCABULARY)
    small = save_bart(tmp_path / "small", seed=SEED + 1, decoder_layers=1, vocab_size=VOCABULARY)
    pair, limits = pair_of(large, small), pair_of(large, small).limits(LENGTH)
    source = pair.tokenise(TEXT, 64)
    sessions = Sessions(**{role: pair.session(role, pair.encode(role, source), limits) for role in ("large", "small")})
    found = bild(sessions, BildSettings(alpha_fb=0), limits, Greedy()).tokens
    assert found == librarys(small, pair, rules=rules)
    assert found != librarys(small, pair)
    assert pair.describe()["rules"] == rules


@given(
    st.lists(st.tuples(st.integers(1, 12), st.lists(st.integers(2, 6), min_size=1, max_size=5)), min_size=1, max_size=6)
)
@settings(max_examples=25)
def test_after_a_truncate_the_rules_see_the_text_that_is_left(
    ruled: Pair, history: list[tuple[int, list[int]]]
) -> None:
    limits = ruled.limits(100)
    encoded = ruled.encode("large", ruled.tokenise(TEXT, 64))
    session, fed = ruled.session("large", encoded, limits), [PAD]
    session.extend(fed)
    for cut, new in history:
        session.truncate(cut)
        fed = fed[:cut] + new
        rows = session.extend(new)
        assert (session.length, len(rows)) == (len(fed), len(new))
    fresh = ruled.session("large", encoded, limits)
    expected = torch.cat([fresh.extend([token]).probs() for token in fed])
    assert_near(rows.probs(), expected[-len(new) :], 1e-12)
    after = {fed[i + 1] for i in range(len(fed) - 1) if fed[i] == fed[-1]}
    assert all(float(rows.probs()[-1, token]) == 0 for token in after)


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return pair_of(save_bart(tmp_path_factory.mktemp("ruled"), seed=SEED, rules={"no_repeat_ngram_size": 2}))


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("guidance_scale", 1.5),
        ("watermarking_config", {"bias": 2.0}),
        ("force_words_ids", [[5]]),
        ("stop_strings", ["."]),
    ],
)
def test_an_unsupported_rule_is_refused_by_name(rule: str, value: Any, tmp_path: Path) -> None:
    file = save_bart(tmp_path) / "generation_config.json"
    # Written by hand: the library checks what it saves, and people edit these files.
    file.write_text(json.dumps(json.loads(file.read_text()) | {rule: value}))
    with pytest.raises(DataError, match=rf"generation_config\.json: {rule}: .* not supported .*remove it"):
        pair_of(tmp_path)


def test_a_penalty_may_be_a_whole_number_which_the_library_refuses(tmp_path: Path) -> None:
    texts = []
    for number, penalty in enumerate((3, 3.0)):
        folder = save_bart(tmp_path / str(number), seed=SEED, vocab_size=VOCABULARY)
        edit(folder, "generation_config.json", repetition_penalty=penalty)
        pair = pair_of(folder)
        assert pair.rules.applied == {"repetition_penalty": 3.0}
        texts.append(ours(pair))
    assert texts[0] == texts[1]


VALUES: list[tuple[dict[str, Any], str]] = [
    ({"bad_words_ids": [[]]}, "a list of lists of token ids, none of them empty"),
    ({"bad_words_ids": "abc"}, "a list of lists of token ids, none of them empty"),
    ({"bad_words_ids": [5]}, "a list of lists of token ids, none of them empty"),
    ({"no_repeat_ngram_size": "3"}, "a whole number from 0, without quotes"),
    ({"no_repeat_ngram_size": -3}, "a whole number from 0, without quotes"),
    ({"encoder_no_repeat_ngram_size": 2.0}, "a whole number from 0, without quotes"),
    ({"min_length": True}, "a whole number from 0, without quotes"),
    ({"suppress_tokens": 5}, "a list of token ids, such as"),
    ({"begin_suppress_tokens": ["a"]}, "a list of token ids, such as"),
    ({"forced_bos_token_id": [3]}, "one token id, without quotes"),
    ({"forced_eos_token_id": "1"}, "a token id, or a list of them"),
    ({"repetition_penalty": "1.2"}, "a number above 0, without quotes"),
    ({"repetition_penalty": 0}, "a number above 0, without quotes"),
    ({"encoder_repetition_penalty": float("nan")}, "a number above 0, without quotes"),
    ({"sequence_bias": {"(3, 4)": 2.0}}, r"a list of \[token ids, number\]"),
    ({"sequence_bias": [[5, 1.0]]}, r"a list of \[token ids, number\]"),
    ({"exponential_decay_length_penalty": [3]}, r"\[tokens, factor\]"),
    ({"eos_token_id": "1"}, "a token id, or a list of them"),
    ({"pad_token_id": "x"}, "one token id, without quotes"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bart(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(("fields", "allowed"), VALUES)
@pytest.mark.parametrize("name", ["generation_config.json", "config.json"])
def test_a_value_of_another_form_is_one_line_that_names_it(
    name: str, fields: dict[str, Any], allowed: str, whole: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "model"))
    if name == "config.json":  # where old checkpoints have their settings
        (folder / "generation_config.json").unlink()
    edit(folder, name, **fields)
    checkpoint = find_checkpoint(ModelChoice(str(folder)), "--large", lambda line: None)
    (rule,) = fields
    with pytest.raises(DataError, match=rf"^{folder}/{name}: {rule}: .*: must be {allowed}.*; correct the file$"):
        check_settings(checkpoint, rules=True)


def test_neutral_values_are_no_rules() -> None:
    neutral = transformers.GenerationConfig(
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        min_length=0,
        suppress_tokens=[],
        num_beams=1,
        length_penalty=1.0,
    )
    assert read_rules(neutral, VOCABULARY, "model") == GenerationRules({}, {})


def test_search_settings_are_recorded_as_ignored() -> None:
    config = transformers.GenerationConfig(num_beams=5, length_penalty=0.6, min_length=3)
    assert read_rules(config, VOCABULARY, "model") == GenerationRules(
        {"min_length": 3}, {"num_beams": 5, "length_penalty": 0.6}
    )


def test_without_rules_a_session_is_left_as_it_is(tmp_path: Path) -> None:
    pair = pair_of(save_mt5(tmp_path))
    source = pair.tokenise(TEXT, 64).ids
    session = pair.models["large"].model.session(pair.models["large"].model.encode(source))  # type: ignore[arg-type]
    assert pair.rules.wrap(session, pair.limits(5), source) is session


@pytest.mark.parametrize(
    "rule",
    [
        {"bad_words_ids": [[VOCABULARY + 2], [5, VOCABULARY]]},
        {"suppress_tokens": [VOCABULARY + 2]},
        {"sequence_bias": [[[VOCABULARY + 2], 99.0], [[5, VOCABULARY], -99.0]]},
    ],
)
def test_a_ban_of_ids_that_the_tokenizer_does_not_have_changes_nothing(rule: dict[str, Any], tmp_path: Path) -> None:
    ruled = pair_of(save_bart(tmp_path / "ruled", seed=SEED, rules=rule))
    assert ours(ruled) == ours(pair_of(save_bart(tmp_path / "free", seed=SEED)))


@pytest.mark.parametrize("rule", ["forced_bos_token_id", "forced_eos_token_id"])
def test_a_forced_id_that_the_tokenizer_does_not_have_is_refused(rule: str, tmp_path: Path) -> None:
    folder = save_bart(tmp_path, rules={rule: VOCABULARY})
    with pytest.raises(DataError, match=rf"{rule}: {VOCABULARY}: .*allowed: 0 to {VOCABULARY - 1}"):
        pair_of(folder)
