"""A trace on a terminal: who wrote what, with colours and without."""

from __future__ import annotations

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


def test_counters_that_nobody_counted_are_left_out_and_zeros_are_shown() -> None:
    assert counted(Counters(generated=5, fallbacks=0)) == "generated 5, fallbacks 0"
    assert counted(Counters(small_calls=3, large_calls=2)) == "small calls 3, large calls 2"
