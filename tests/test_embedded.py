"""The pair that comes with the package: greedy texts are the library's, and BiLD's limits are vanilla and small."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import bild_bench
from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.bild import BildSettings
from bild_bench.decoding.methods import find_method
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Decoded, generated_tokens
from bild_bench.decoding.session import Sessions
from bild_bench.models.choice import choose_pair
from bild_bench.models.library import DTYPES
from bild_bench.models.pair import Pair, load_pair
from tests.forward import load

EMBEDDED = Path(bild_bench.__file__).parent / "embedded"


def lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (EMBEDDED / "data" / name).read_text("utf-8").splitlines()]


# Everyday sentences and sentences about software alternate, so that a beginning is a fair sample of both.
SENTENCES = [pair["source"] for pair in lines("de_en.jsonl")][:60]
FOLDERS = ("large", "small", "aligned")
PREFIX = "translate German to English: "
LENGTH = 128
NEAR_TIE = 1e-5


@cache
def pair_of(session: str, dtype: str) -> Pair:
    return load_pair(choose_pair("iwslt17", "translation", aligned=False), device="cpu", dtype=dtype, session=session)


@cache
def decoded(mode: str, settings: Any, text: str, session: str = "fast", dtype: str = "float64") -> Decoded:
    """One text by one method; many tests ask for the same."""
    pair, method = pair_of(session, dtype), find_method(mode)
    limits, source = pair.limits(LENGTH), pair.tokenise(text, 1024)
    sessions = {role: pair.session(role, pair.encode(role, source), limits) for role in method.uses}
    return method.decode(Sessions(**sessions), settings, limits, Greedy())


@cache
def librarys(role: str, dtype: str) -> list[tuple[tuple[int, ...], float]]:
    """For every sentence: the ids of the library's own greedy `generate`, and its closest lead of best over second."""
    model = load(EMBEDDED / role, dtype)
    assert model.dtype == DTYPES[dtype]
    tokenizer = transformers.AutoTokenizer.from_pretrained(EMBEDDED / role)
    limits = pair_of("fast", dtype).limits(LENGTH)
    found = []
    for text in SENTENCES:
        source = tokenizer(PREFIX + text, return_tensors="pt").input_ids
        output = model.generate(
            source, max_new_tokens=LENGTH, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
        best = torch.cat(output.logits).topk(2).values
        found.append((generated_tokens(output.sequences[0].tolist(), limits), float((best[:, 0] - best[:, 1]).min())))
    return found


def test_there_are_200_pairs_and_80_descriptions() -> None:
    pairs, descriptions = lines("de_en.jsonl"), lines("summaries.jsonl")
    assert len({pair["source"] for pair in pairs}) == len(pairs) == 200
    assert len({text["document"] for text in descriptions}) == len(descriptions) == 80
    assert all(15 <= len(text["document"].split()) <= 120 for text in descriptions)
    assert {len(text["highlights"].splitlines()) for text in descriptions} == {2}


@pytest.mark.parametrize("task", ["iwslt17", "wmt14", "xsum", "cnn_dm"])
@pytest.mark.parametrize("aligned", [False, True])
def test_every_named_task_has_the_pair(task: str, aligned: bool) -> None:
    kind = "translation" if task in ("iwslt17", "wmt14") else "summarization"
    choice = choose_pair(task, kind, aligned=aligned)
    assert choice.large is not None
    assert choice.small is not None
    assert Path(choice.large.source).parent == Path(choice.small.source).parent == EMBEDDED
    assert choice.prefix == {"translation": "translate German to English: ", "summarization": "summarize: "}[kind]


def test_the_models_are_small_enough_to_ship() -> None:
    sizes = {folder: sum(file.stat().st_size for file in (EMBEDDED / folder).iterdir()) for folder in FOLDERS}
    assert sum(sizes.values()) < 30e6
    assert all((EMBEDDED / folder / "model.safetensors").is_file() for folder in FOLDERS)


@pytest.mark.parametrize(("mode", "role"), [("vanilla", "large"), ("small", "small")])
def test_greedy_ids_are_the_librarys_in_float64(mode: str, role: str) -> None:
    for text, (ids, _) in zip(SENTENCES, librarys(role, "float64"), strict=True):
        assert decoded(mode, AloneSettings(), text).tokens == ids, text


@pytest.mark.parametrize(("mode", "role"), [("vanilla", "large"), ("small", "small")])
def test_greedy_ids_are_the_librarys_in_float32_but_for_near_ties(mode: str, role: str) -> None:
    theirs = librarys(role, "float32")
    near_ties = [text for text, (_, lead) in zip(SENTENCES, theirs, strict=True) if lead < NEAR_TIE]
    assert len(near_ties) <= 3, near_ties
    for text, (ids, _) in zip(SENTENCES, theirs, strict=True):
        if text not in near_ties:
            assert decoded(mode, AloneSettings(), text, dtype="float32").tokens == ids, text


def test_the_texts_are_texts_and_the_models_differ() -> None:
    # Otherwise the tests below would compare the same short nothing with itself.
    large = [decoded("vanilla", AloneSettings(), text).tokens for text in SENTENCES]
    small = [decoded("small", AloneSettings(), text).tokens for text in SENTENCES]
    assert sum(one != other for one, other in zip(large, small, strict=True)) > 20
    ends = pair_of("fast", "float64").special.ends
    # So small a model repeats itself to the limit here and there.
    assert sum(len(ids) > 3 and ids[-1] in ends for ids in large) > 50


@pytest.mark.parametrize(
    ("session", "texts", "variant"),
    [
        ("fast", 30, {}),
        ("fast", 12, {"max_draft": 3}),
        ("fast", 12, {"first": "large", "alpha_rb": 0}),
        ("reference", 12, {}),
    ],
)
def test_alpha_fb_1_is_vanilla(session: str, texts: int, variant: dict[str, Any]) -> None:
    settings = BildSettings(alpha_fb=1, **variant)
    for text in SENTENCES[:texts]:
        found = decoded("bild", settings, text, session)
        assert found.tokens == decoded("vanilla", AloneSettings(), text, session).tokens, text
        assert found.counters.large_tokens == found.counters.large_calls == len(found.tokens)
        assert found.counters.drafted == 0


@pytest.mark.parametrize(("session", "texts"), [("fast", 60), ("reference", 12)])
@pytest.mark.parametrize("alpha_rb", [0, 2, math.inf])
def test_alpha_fb_0_is_the_small_model(session: str, texts: int, alpha_rb: float) -> None:
    settings = BildSettings(alpha_fb=0, alpha_rb=alpha_rb)
    for text in SENTENCES[:texts]:
        found = decoded("bild", settings, text, session)
        assert found.tokens == decoded("small", AloneSettings(), text, session).tokens, text
        assert (found.counters.large_calls, found.counters.drafted) == (0, len(found.tokens))


def test_both_kinds_of_session_decode_alike() -> None:
    settings = BildSettings(alpha_fb=0.5, alpha_rb=1, max_draft=6, verify_tail=True)
    for text in SENTENCES[:12]:
        fast, reference = decoded("bild", settings, text), decoded("bild", settings, text, "reference")
        assert (fast.tokens, fast.counters) == (reference.tokens, reference.counters), text
        for ours, theirs in zip(fast.trace(), reference.trace(), strict=True):
            assert ours[:4] == theirs[:4]
            assert ours.small_max_prob == pytest.approx(theirs.small_max_prob, abs=1e-9)
            assert ours.large_nll == pytest.approx(theirs.large_nll, abs=1e-9)


def test_without_rollback_nothing_is_ever_rolled_back() -> None:
    never = [decoded("bild", BildSettings(alpha_rb=math.inf), text).counters for text in SENTENCES[:30]]
    strict = [decoded("bild", BildSettings(alpha_rb=0.5), text).counters for text in SENTENCES[:30]]
    assert {(counters.rollbacks, counters.discarded) for counters in never} == {(0, 0)}
    assert sum(counters.fallbacks or 0 for counters in never) > 30
    assert sum(counters.rollbacks or 0 for counters in strict) > 5


def test_bild_with_a_tail_check_and_no_tolerance_is_vanilla() -> None:
    # A draft stays only where -ln p_L is 0 to rounding, so L's own token stands everywhere.
    settings = BildSettings(alpha_fb=0.9, alpha_rb=0, verify_tail=True)
    for text in SENTENCES[:20]:
        assert decoded("bild", settings, text).tokens == decoded("vanilla", AloneSettings(), text).tokens, text
