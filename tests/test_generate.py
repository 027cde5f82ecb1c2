"""`bild-bench generate`: one text, and who wrote which token."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from bild_bench import api
from bild_bench.api import Generated, Piece
from bild_bench.decoding.records import Counters, TraceStep
from tests.command_line import call

TEXT = "Zwei Hunde laufen über eine Wiese."
ROLLED_BACK = Generated(
    "A dog",
    (5, 7, 1),
    Counters(generated=3, rollbacks=1),
    (
        Piece("A", TraceStep(0, 5, "S", True, 0.9, 0.25)),
        Piece(" cat", TraceStep(1, 6, "S", False, 0.8, math.inf)),
        Piece(" dog", TraceStep(1, 7, "L", True, None, 0.5)),
        Piece("</s>", TraceStep(2, 1, "S", True, 0.9, None)),
    ),
    hit_limit=False,
    source_truncated=False,
)


def refuse(constant: str) -> None:
    pytest.fail(f"{constant} is not JSON")


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "load_pair", lambda *_, **__: None)
    monkeypatch.setattr(api, "generate", lambda *_, **__: ROLLED_BACK)


def test_a_text_on_stdout_has_marks_and_its_counters_are_on_stderr() -> None:
    ended = call("generate", TEXT, "--mode", "vanilla")
    text, _, legend = ended.out.partition("\n\n")
    assert ended.code == 0
    assert text.startswith("[")
    assert text.endswith("[</s>]")
    assert legend == "[large model]  ~rolled back~  the rest: small model\n"
    assert ended.err.startswith("generated ")
    assert ended.err.count("\n") == 1


def test_the_small_model_alone_needs_no_marks() -> None:
    ended = call("generate", TEXT, "--mode", "small")
    assert ended.code == 0
    assert not set("[]~") & set(ended.out.partition("\n\n")[0])


def test_json_is_one_object_and_says_what_the_interface_says() -> None:
    ended = call("generate", TEXT, "--alpha-fb", "0.4", "--alpha-rb", "0.5", "--json")
    assert (ended.code, ended.err) == (0, "")
    wanted = api.generate(api.load_pair(), TEXT, alpha_fb=0.4, alpha_rb=0.5)
    found = json.loads(ended.out, parse_constant=refuse)
    assert found["text"] == wanted.text
    assert found["tokens"] == list(wanted.tokens)
    assert found["counters"] == wanted.counters.as_dict()
    assert [step["text"] for step in found["trace"]] == [piece.text for piece in wanted.pieces]


@pytest.mark.usefixtures("by_hand")
def test_what_was_rolled_back_is_shown_where_it_was_written() -> None:
    ended = call("generate", TEXT)
    assert ended.out.splitlines()[0] == "A ~cat~ [dog]</s>"
    assert ended.err == "generated 3, rollbacks 1\n"


@pytest.mark.usefixtures("by_hand")
def test_an_impossible_token_has_an_infinite_loss_and_the_json_stays_strict() -> None:
    found = json.loads(call("generate", TEXT, "--json").out, parse_constant=refuse)
    assert [step["large_nll"] for step in found["trace"]] == [0.25, "inf", 0.5, None]


def test_letters_of_all_languages_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Generated("Größe", (5,), Counters(), (Piece("Größe", TraceStep(0, 5, "S", True, 1.0, None)),), True, False)
    monkeypatch.setattr(api, "load_pair", lambda *_, **__: None)
    monkeypatch.setattr(api, "generate", lambda *_, **__: text)
    assert '"Größe"' in call("generate", TEXT, "--json").out


@pytest.mark.parametrize("arguments", [("--alpha-fb", "2"), ("--mode", "vanilla", "--alpha-rb", "1")])
def test_a_wrong_setting_is_told_before_anything_is_loaded(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_pair(*_: Any, **__: Any) -> None:
        pytest.fail("loaded")

    monkeypatch.setattr(api, "load_pair", load_pair)
    assert call("generate", TEXT, *arguments).code == 2


def test_only_the_models_that_the_mode_uses_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_pair(*_: Any, **options: Any) -> None:
        asked.append(options["roles"])

    monkeypatch.setattr(api, "load_pair", load_pair)
    monkeypatch.setattr(api, "generate", lambda *_, **__: ROLLED_BACK)
    for mode in ("vanilla", "small", "bild"):
        call("generate", TEXT, "--mode", mode)
    assert asked == [("large",), ("small",), ("large", "small")]


def test_an_empty_text_is_refused_in_one_line() -> None:
    ended = call("generate", " ")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: TEXT: ' ': is empty; give a text to decode\n"
