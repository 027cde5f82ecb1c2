"""What the large model corrects, on traces worked out by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from bild_bench.report.corrections import Corrections, Pair, corrections


def step(position: int, token: int, author: str = "S", kept: bool = True) -> dict[str, Any]:
    return {"position": position, "token": token, "author": author, "kept": kept}


def cut(position: int, token: int) -> dict[str, Any]:
    return step(position, token, kept=False)


def rows(*traces: Any, pieces: Any = None) -> pd.DataFrame:
    frame = pd.DataFrame({"status": ["ok"] * len(traces), "trace": list(traces)})
    return frame if pieces is None else frame.assign(pieces=pieces)


def found(*traces: Any, pieces: Any = None) -> Corrections:
    result = corrections(rows(*traces, pieces=pieces))
    assert result is not None
    return result


# Eight kept tokens: positions 0-1, 2-3, 4-5 and 6-7 are the quarters.
EIGHT = [
    *(step(0, 10), step(1, 11, "L"), step(2, 12)),
    *(cut(3, 13), cut(4, 14), cut(5, 15)),
    *(step(3, 23, "L"), step(4, 14), step(5, 25), cut(6, 16)),
    *(step(6, 26, "L"), step(7, 27)),
]
NAMES = ["a", " b", " c", " d", "e", "f", " D", "e", " g", "x", "y", "."]


def test_cuts_and_handovers_by_quarter_of_their_text() -> None:
    figures = found(EIGHT)
    assert figures.texts == 1
    assert figures.tokens == (2, 2, 2, 2)
    assert figures.rollbacks == (0, 1, 0, 1)
    # Position 1 alone: the tokens at 3 and 6 took the place of a draft.
    assert figures.handovers == (1, 0, 0, 0)


def test_a_cut_of_three_drafts_is_one_rollback_of_its_first_token() -> None:
    assert found(EIGHT).pairs == (Pair("#13", "#23", 1), Pair("#16", "#26", 1))


def test_a_draft_that_comes_again_at_its_place_was_drafted_twice() -> None:
    figures = found(EIGHT)
    assert (figures.discarded, figures.drafted_twice) == (4, 1)


def test_a_draft_cut_twice_counts_twice() -> None:
    trace = [cut(0, 1), cut(1, 5), step(0, 2, "L"), cut(1, 5), step(1, 3, "L")]
    assert (found(trace).discarded, found(trace).drafted_twice) == (3, 1)


def test_word_starts_and_names_need_pieces() -> None:
    assert found(EIGHT).word_starts is None
    named = found(EIGHT, pieces=[NAMES])
    assert (named.word_starts, named.continuations) == (1, 1)
    assert named.pairs == (Pair(" d", " D", 1), Pair("x", "y", 1))


def test_the_first_token_of_a_text_starts_a_word() -> None:
    assert found([cut(0, 1), step(0, 2, "L")], pieces=[["Katze", "Cat"]]).word_starts == 1


def test_frequent_pairs_come_first_and_no_more_than_asked() -> None:
    often = [cut(0, 1), step(0, 2, "L")]
    once = [cut(0, 3), step(0, 4, "L")]
    result = corrections(rows(once, often, often), most=1)
    assert result is not None
    assert result.pairs == (Pair("#1", "#2", 2),)


@pytest.mark.parametrize("author", ["S", "L"])
def test_one_model_alone_corrects_nothing(author: str) -> None:
    assert corrections(rows([step(0, 1, author)])) is None


def test_failed_texts_and_texts_without_a_trace_are_left_out() -> None:
    frame = pd.DataFrame({"status": ["error", "ok"], "trace": [None, None]})
    assert corrections(frame) is None
