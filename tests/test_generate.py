"""`bild-bench generate`: one text, and which model generated each token."""

from __future__ import annotations

import io
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench import api
from bild_bench.api import Generated, Piece
from bild_bench.decoding.records import Counters, TraceStep
from tests.command_line import call

PROJECT = Path(__file__).resolve().parents[1]
TEXT = "Zwei Hunde tragen einen roten Schuh über die Wiese."
ROLLED_BACK = Generated(
    "A dog",
    (5, 7, 1),
    Counters(generated=3, small_calls=4, large_calls=1, drafted=3, discarded=1, large_tokens=1, rollbacks=1),
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
    assert legend == "[large model]\n"
    tokens = text.count("[")
    assert ended.err == f"{tokens} tokens by the large model, called {tokens} times\n"


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
    assert ended.err == "2 of 3 tokens by the small model; the large one was called once, 1 rollback\n"


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


def test_a_dash_reads_the_text_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "load_pair", lambda *_, **__: None)
    asked = []

    def generate(_: Any, text: str, *__: Any, **___: Any) -> Any:
        asked.append(text)
        return ROLLED_BACK

    monkeypatch.setattr(api, "generate", generate)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Der Hund\nschläft.\n"))
    assert call("generate", "-").code == 0
    assert asked == ["Der Hund\nschläft."]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b" \n", "error: TEXT: '-': stdin holds no text; pipe a text into it, or give one as an argument\n"),
        (b"\xff", "error: TEXT: '-': stdin is not UTF-8 text; convert it first\n"),
    ],
)
def test_a_stdin_without_a_text(held: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(held), encoding="utf-8"))
    ended = call("generate", "-")
    assert (ended.code, ended.err) == (2, said)


def test_an_empty_text_is_refused_in_one_line() -> None:
    ended = call("generate", " ")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: TEXT: ' ': is empty; give a text to decode\n"


def test_a_source_that_was_cut_or_is_not_known_and_a_text_without_an_end_are_told(tmp_path: Path) -> None:
    task = (PROJECT / "tasks" / "iwslt17.yaml").read_text("utf-8")
    short = task.replace("target_limit: 128", "target_limit: 2").replace("source_limit: 1024", "source_limit: 16")
    (tmp_path / "short.yaml").write_text(short, "utf-8")
    ended = call("generate", "\N{DOG FACE} " + TEXT, "--mode", "vanilla", "--task", tmp_path / "short.yaml")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        "the source was cut at the task's source limit",
        "1 source token unknown to the tokenizer",
        "the text ended at the length limit, without an end token",
        "2 tokens by the large model, called twice",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--mode", "calm", "--threshold", "0.5"), True),
        (("--mode", "bild-early-exit"), True),
        (("--mode", "calm", "--threshold", "1"), False),  # never leaves early
        (("--mode", "bild"), False),
    ],
)
def test_leaving_early_in_a_checkpoint_that_was_not_trained_for_it_is_told(
    arguments: tuple[str, ...], told: bool
) -> None:
    assert ("expect noise" in call("generate", "Ein Hund.", *arguments).err) is told


def test_remarks_are_in_the_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "load_pair", lambda *_, **__: None)
    monkeypatch.setattr(api, "generate", lambda *_, **__: replace(ROLLED_BACK, remarks=("odd",)))
    ended = call("generate", TEXT, "--json")
    assert json.loads(ended.out)["remarks"] == ["odd"]
    assert ended.err == "odd\n"
