"""The text of every token of a trace, in the context it was generated in."""

from __future__ import annotations

from collections.abc import Iterable

from bild_bench.decoding.records import TraceStep
from bild_bench.models.pair import Pair


def pieces_of(pair: Pair, trace: Iterable[TraceStep]) -> tuple[str, ...]:
    """One text a step, those of tokens that were rolled back included."""
    written: list[int] = []
    pieces = []
    for step in trace:
        del written[step.position :]
        pieces.append(pair.piece(written, step.token))
        written.append(step.token)
    return tuple(pieces)
