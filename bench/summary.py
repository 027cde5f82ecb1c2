"""The tables of docs/PERFORMANCE.md from the figures that `bench.cpu` recorded; all rows: docs/performance/rows.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bench.figures import Figure
from bench.table import line, shown

# In the order in which they are shown; other shapes follow under their own names.
MODELS = {
    "t5-small": "T5-small",
    "t5-large": "T5-large",
    "embedded": "embedded pair",
    "embedded, aligned": "embedded pair, aligned",
    "multi30k-large+multi30k-small": "captions pair",
    "multi30k-large+aligned": "captions pair, aligned",
}
_OTHERS = ("over transformers generate", "over CTranslate2 float32", "over CTranslate2 int8")
_NO_LOSS, _ONE_POINT = "over our vanilla, no loss", "over our vanilla, a loss of 1 at most"
_ASSISTED = "over transformers assisted generation"
_LIMIT, _OURS, _LIBRARY = "of machine's limit", "bild-bench", "transformers' modules"
_DIFFERENCE = re.compile(r"\(([+-]\d+\.\d+ \[[^\]]+\])\)")


def tables(figures: Sequence[Figure]) -> dict[str, str]:
    """Name of a place in the page -> its table."""
    return {
        "decoding": _matrix(figures, "vanilla", _OTHERS),
        "whole": _matrix(figures, "vanilla with its encoder", _OTHERS[:2]),
        "bild": _bild(figures),
        "limits": _limits(figures),
        "others": _others(figures),
        "goals": _goals(figures),
    }


def _matrix(figures: Sequence[Figure], name: str, contestants: Sequence[str]) -> str:
    """One line per model, one column per other program: how many times faster ours is."""
    header = ["model", *(contestant.removeprefix("over ") for contestant in contestants)]
    found = [one for one in figures if one.name == name]
    lines = [[_model(shape), *(_cell(found, shape, other) for other in contestants)] for shape in _shapes(found)]
    return _table(header, lines)


def _bild(figures: Sequence[Figure]) -> str:
    header = ["pair", "no loss on validation", "BLEU against the large model", "at most 1 point on validation"]
    header += ["BLEU against the large model", "over transformers' assisted generation"]
    found = [one for one in figures if one.name == "BiLD"]
    lines = [
        [
            _model(shape),
            *(_cell(found, shape, _NO_LOSS), _difference(found, shape, _NO_LOSS)),
            *(_cell(found, shape, _ONE_POINT), _difference(found, shape, _ONE_POINT)),
            _cell(found, shape, _ASSISTED),
        ]
        for shape in _shapes(found)
    ]
    return _table(header, lines)


def _limits(figures: Sequence[Figure]) -> str:
    header = ["model", "one token: time over the machine's limit", "encoder: time over the machine's limit"]
    header += ["8 tokens over 1 token, ours", "8 tokens over 1 token, transformers"]
    lines = []
    for shape in _shapes([one for one in figures if one.name == "vanilla step"]):
        several = [one for one in figures if one.name.endswith("in a step over one")]
        cells = [_cell([one for one in figures if one.name == name], shape, _LIMIT) for name in _STEPS]
        lines.append([_model(shape), *cells, _cell(several, shape, _OURS), _cell(several, shape, _LIBRARY)])
    return _table(header, lines)


_STEPS = ("vanilla step", "encoder")
_REST = ("time outside the models", "memory growth", "--help", "report on 100 experiments")


def _others(figures: Sequence[Figure]) -> str:
    found = sorted((one for one in figures if one.name in _REST), key=lambda one: _REST.index(one.name))
    places = [f"{_model(one.shape)}, {one.contestant}".removesuffix(", itself") for one in found]
    return _table(
        ["what", "of", "measured"], [[one.name, place, _value(one)] for one, place in zip(found, places, strict=True)]
    )


def _goals(figures: Sequence[Figure]) -> str:
    """What was asked of the decoder and is not met; speed that costs more quality than allowed does not count."""
    lines = []
    for one in figures:
        if one.reached is False and one.target is not None:
            asked = f"{one.bound} {shown(one.target, one.unit)}"
            quality = _DIFFERENCE.search(one.note)
            lines.append([_what(one), asked, _value(one), "" if quality is None else quality.group(1)])
    return _table(["goal", "asked", "measured", "BLEU difference"], lines)


def _what(one: Figure) -> str:
    """Such as "BiLD over our large model alone, no loss: embedded pair"."""
    contestant = "" if one.contestant == _OURS else f" {one.contestant}"
    return f"{one.name}{contestant}: {_model(one.shape)}".replace("our vanilla", "our large model alone")


def _shapes(figures: Sequence[Figure]) -> Iterator[str]:
    found = dict.fromkeys(one.shape for one in figures)
    yield from [name for name in MODELS if name in found]
    yield from [name for name in found if name not in MODELS]


def _model(shape: str) -> str:
    return MODELS.get(shape, shape)


def _cell(figures: Sequence[Figure], shape: str, contestant: str) -> str:
    return next((_value(one) for one in figures if (one.shape, one.contestant) == (shape, contestant)), "")


def _difference(figures: Sequence[Figure], shape: str, contestant: str) -> str:
    """Of BLEU, as the row's note has it."""
    for one in figures:
        if (one.shape, one.contestant) == (shape, contestant):
            found = _DIFFERENCE.search(one.note)
            return "" if found is None else found.group(1)
    return ""


def _value(one: Figure) -> str:
    """Such as "3.96x [3.83, 4.05]"."""
    if one.ratio is None:
        return "not measured"
    if one.low is None or one.high is None:
        return shown(one.ratio, one.unit)
    low, high = (f"{100 * end:.1f}" if one.unit == "share" else f"{end:.2f}" for end in (one.low, one.high))
    return f"{shown(one.ratio, one.unit)} [{low}, {high}]"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(line(cells) for cells in [header, ["---"] * len(header), *lines])
