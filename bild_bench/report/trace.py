"""A text's trace for a terminal: which model generated each token, and what was rolled back."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from bild_bench.decoding.records import Counters, TraceStep

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {"S": "green", "L": "bold blue", "cut": "red strike"}
# Where there is no colour the same is said with brackets.
_MARKS = {"S": ("", ""), "L": ("[", "]"), "cut": ("~", "~")}


class WrittenPiece(Protocol):
    """A token's text and its step."""

    @property
    def text(self) -> str: ...

    @property
    def step(self) -> TraceStep: ...


def coloured(pieces: Collection[WrittenPiece], *, plain: bool) -> Text:
    """The text with every token marked, a legend below.

    Args:
        pieces: every token ever generated, in that order.
        plain: mark with brackets and tildes and not with colours.
    """
    from rich.text import Text

    line = Text()
    for piece in pieces:
        _append(line, piece.text, _kind(piece), plain)
    _append_legend(line, {_kind(piece) for piece in pieces}, plain)
    return line


def counted(counters: Counters) -> str:
    """How many tokens each model generated, and how often the large model was called, in one line."""
    c = counters
    if c.generated is None:
        return "the number of tokens is not known"
    tokens = "1 token" if c.generated == 1 else f"{c.generated} tokens"
    if c.drafted is None or c.discarded is None or c.large_calls is None:
        return tokens
    if not c.small_calls:
        return f"{tokens} by the large model, called {_times(c.large_calls)}"
    asked = f"the large one was called {_times(c.large_calls)}" if c.large_calls else "the large one was never called"
    rollbacks = "" if c.rollbacks is None else f", {c.rollbacks} rollback{'' if c.rollbacks == 1 else 's'}"
    return f"{c.drafted - c.discarded} of {tokens} by the small model; {asked}{rollbacks}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _kind(piece: WrittenPiece) -> str:
    return piece.step.author if piece.step.kept else "cut"


def _append_legend(line: Text, kinds: Collection[str], plain: bool) -> None:
    """What the marks mean, of those that occur."""
    before = "\n\n"
    for kind, what in (("S", "small model"), ("L", "large model"), ("cut", "rolled back")):
        if kind in kinds and not (plain and kind == "S"):
            line.append(before)
            _append(line, what, kind, plain)
            before = "  "
    if plain and "S" in kinds:
        line.append(f"{before}{'all' if len(kinds) == 1 else 'the rest'}: small model")


def _append(line: Text, text: str, kind: str, plain: bool) -> None:
    if not plain:
        line.append(text, style=_STYLES[kind])
        return
    body = text.lstrip(" ")
    line.append(" " * (len(text) - len(body)) + body.join(_MARKS[kind]))
