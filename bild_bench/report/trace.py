"""A text's trace for a terminal: who wrote which token, and what was rolled back."""

from __future__ import annotations

from collections.abc import Iterable
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


def coloured(pieces: Iterable[WrittenPiece], *, plain: bool) -> Text:
    """The text with every token marked, a legend below.

    Args:
        pieces: every token ever written, in that order.
        plain: mark with brackets and tildes and not with colours.
    """
    from rich.text import Text

    line = Text()
    for piece in pieces:
        _append(line, piece.text, piece.step.author if piece.step.kept else "cut", plain)
    line.append("\n\n")
    for kind, what in (("S", "small model"), ("L", "large model"), ("cut", "rolled back")):
        if kind != "S" or not plain:
            _append(line, what, kind, plain)
            line.append("  ")
    if plain:
        line.append("the rest: small model")
    return line


def counted(counters: Counters) -> str:
    """The counters that were counted, in one line."""
    known = ((name.replace("_", " "), value) for name, value in counters.as_dict().items() if value is not None)
    return ", ".join(f"{name} {value}" for name, value in known)


def _append(line: Text, text: str, kind: str, plain: bool) -> None:
    if not plain:
        line.append(text, style=_STYLES[kind])
        return
    body = text.lstrip(" ")
    line.append(" " * (len(text) - len(body)) + body.join(_MARKS[kind]))
