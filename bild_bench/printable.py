"""Names and messages as they may be shown: on a terminal, a page, a plot, in Markdown.

A label, a column or a file may have any name. A control character in it moves the cursor of a terminal, ends the
library that draws plots, or turns the order of a line round; so none is shown as it is.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any

# Control characters but for line ends and tabs, line and paragraph separators, changes of direction, and what is no
# character at all: lone surrogates (of file names that are not UTF-8) and noncharacters, which XML forbids.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    r"""The text with every control character written out, such as "\x1b"; line ends and tabs stay."""
    return _UNSEEN.sub(lambda found: _written_out(found[0]), text)


def one_line(text: str) -> str:
    """The text on one line, with single spaces and no control character."""
    return visible(" ".join(text.split()))


def cut(text: str, width: int = 300) -> str:
    """The text, with an ellipsis in place of what is beyond this many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def shown(value: object, width: int = 300) -> str:
    """A value as Python spells it, cut to this many characters.

    Nothing is spelled out and cut afterwards: a few lines of YAML aliases stand for gigabytes.
    """
    if isinstance(value, str | bytes):
        return cut(repr(value[:width]), width) if len(value) < width else cut(repr(value[:width]) + "…", width)
    try:
        return cut(_SHORT.repr(value), width)
    # What Python refuses to spell out: a whole number of thousands of digits.
    except ValueError:
        return f"a {type(value).__name__} that is too long to be shown"


class _Short(reprlib.Repr):
    """Three levels of lists and mappings, the first items of each; the library's own cuts texts in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 20

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, Mapping | list | tuple | set | frozenset):
            return str(super().repr1(x, level))
        return shown(x) if isinstance(x, str | bytes) else cut(repr(x))


_SHORT = _Short()


def visible_values(value: Any) -> Any:
    """The same JSON value with every text, names of fields too, made `visible`."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(str(key)): visible_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [visible_values(item) for item in value]
    return value


def _written_out(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
