"""A trace on a terminal: which model generated each token, with colours and without."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bild_bench.api import Piece
from bild_bench.decoding.records import Counters, TraceStep
from bild_bench.report.trace import coloured, counted


def piece(text: str, author: str, kept: bool = True) -> Piece:
    return Piece(text, TraceStep(0, 7, author, kept, None, None))


# "The" by S, " cat" by S and rolled back, " dog" by L, " barks" by S, the end token by L.
PIECES = [piece("The", "S"), piece(" cat", "S", False), piece(" dog", "L"), piece(" barks", "S"), piece("</s>", "L")]


def test_without_colour_brackets_and_tildes_say_the_same() -> None:
    shown = coloured(PIECES, plain=True)
    assert shown.plain == "The ~cat~ [dog] barks[</s>]\n\n[large model]  ~rolled back~  the rest: small model"
    assert shown.spans == []


def test_with_colour_every_author_has_a_style_of_its_own_and_the_text_stays_as_it_is() -> None:
    shown = coloured(PIECES, plain=False)
    text, _, legend = shown.plain.partition("\n\n")
    assert text == "The cat dog barks</s>"
    assert legend.split("  ")[:3] == ["small model", "large model", "rolled back"]
    styles = {shown.plain[span.start : span.end]: str(span.style) for span in shown.spans}
    assert styles["The"] == styles[" barks"] == styles["small model"]
    assert styles[" dog"] == styles["</s>"] == styles["large model"]
    assert styles[" cat"] == styles["rolled back"]
    assert len({styles["The"], styles[" dog"], styles[" cat"]}) == 3


def test_a_rolled_back_token_of_the_large_model_is_shown_as_rolled_back() -> None:
    assert coloured([piece("x", "L", False)], plain=True).plain.startswith("~x~\n")


def test_square_brackets_of_the_text_are_no_markup() -> None:
    assert coloured([piece("[red]", "S")], plain=False).plain.startswith("[red]\n")


@pytest.mark.parametrize(
    ("pieces", "legend"),
    [
        (PIECES[:1], "all: small model"),
        (PIECES[:2], "~rolled back~  the rest: small model"),
        (PIECES[2:3], "[large model]"),
    ],
)
def test_the_legend_tells_only_of_what_occurs(pieces: list[Piece], legend: str) -> None:
    assert coloured(pieces, plain=True).plain.partition("\n\n")[2] == legend


OURS = Counters(generated=9, small_calls=12, large_calls=2, drafted=10, discarded=3, large_tokens=2, rollbacks=0)


@pytest.mark.parametrize(
    ("counters", "line"),
    [
        (OURS, "7 of 9 tokens by the small model; the large one was called twice, 0 rollbacks"),
        (
            replace(OURS, large_calls=0, drafted=9, discarded=0),
            "9 of 9 tokens by the small model; the large one was never called, 0 rollbacks",
        ),
        (
            replace(OURS, large_calls=1, rollbacks=1),
            "7 of 9 tokens by the small model; the large one was called once, 1 rollback",
        ),
        (
            Counters(generated=1, small_calls=0, large_calls=1, drafted=0, discarded=0),
            "1 token by the large model, called once",
        ),
        (Counters(generated=5), "5 tokens"),  # a peer tells no more
    ],
)
def test_counters_are_one_line_that_says_who_wrote(counters: Counters, line: str) -> None:
    assert counted(counters) == line
