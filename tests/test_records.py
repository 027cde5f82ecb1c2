"""What counts as a generated token, and the record of counters."""

from __future__ import annotations

import pytest

from bild_bench.decoding.methods import METHODS, find_method
from bild_bench.decoding.records import Counters, generated_tokens
from bild_bench.errors import UsageError
from tests.tables import END, START, limits


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([START, 4, 5, END], (4, 5, END)),
        ([4, 5, END], (4, 5, END)),
        ([START, 4, END, 0, 0], (4, END)),
        ([START, 4, 5, 6, 7, 4], (4, 5, 6, 7)),
        ([START, END, 5], (END,)),
        ([START], ()),
        ([], ()),
        # A start token that is also the padding: only the first one is the start.
        ([START, START, 4], (START, 4)),
    ],
)
def test_generated_tokens_end_with_the_end_token_or_the_limit(ids, expected):
    assert generated_tokens(ids, limits(4)) == expected


def test_unknown_counters_are_null_and_not_zero():
    assert set(Counters().as_dict().values()) == {None}
    assert tuple(Counters(drafted=0).as_dict()) == Counters.names()
    assert Counters(drafted=0).as_dict()["drafted"] == 0


def test_a_method_that_is_not_there_gets_a_hint():
    with pytest.raises(UsageError, match=r"--mode.*bidl.*did you mean 'bild'"):
        find_method("bidl")
    assert {"vanilla", "small", "bild"} <= set(METHODS)
