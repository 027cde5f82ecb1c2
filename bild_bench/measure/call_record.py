"""Which calls of a model a text took: sessions that note each pass, for a decoding outside all clocks.

A trace tells which model generated each token, but not every method's windows and layers; the sessions see all of it,
so one recorder serves every method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bild_bench.decoding.session import Sessions
from bild_bench.measure.operations import DecoderCall


@dataclass(frozen=True)
class Recorded:
    """One call of a model.

    Args:
        role: "large" or "small"; of an early exit, the lower layers are the small model.
        rows: tokens it was fed.
        passes: its passes through the decoder: one, but for an early exit's large call on tokens that the lower layers
            have not seen.
        scored: its probabilities were read, not the best token alone.
    """

    role: str
    rows: int
    passes: tuple[DecoderCall, ...]
    scored: bool = False


@dataclass
class _Note:
    """A call while it is under way; read: layer -> rows projected there, and whether they were scored."""

    role: str
    cached: int
    rows: int
    lower: tuple[int, int] | None = None
    layers: int = 0
    read: dict[int, int] = field(default_factory=dict)
    scored: bool = False


class Recorder:
    """Wraps a method's sessions; `calls` tells afterwards what they were asked for.

    Args:
        depth: decoder layers of the large model.
        source: source tokens.
        exit_layer: of an early exit; None for other methods.
        reads_all: whether rows are projected even where nobody reads them.
    """

    def __init__(self, depth: int, source: int, exit_layer: int | None, reads_all: bool) -> None:
        self._depth, self._source, self._exit_layer = depth, source, exit_layer
        self._reads_all = reads_all
        self._notes: list[_Note] = []

    def wrap(self, sessions: Sessions) -> Sessions:
        """The sessions, each noting its calls here."""
        small, large, layered = sessions.small, sessions.large, sessions.layered
        lower = small if self._exit_layer is not None else None
        return replace(
            sessions,
            small=None if small is None else _Noting(small, "small", self._notes),
            large=None if large is None else _Noting(large, "large", self._notes, lower),
            layered=None if layered is None else _NotingLayers(layered, self._notes),
        )

    def calls(self) -> list[Recorded]:
        """All calls so far, in their order."""
        return [Recorded(note.role, note.rows, self._passes(note), note.scored) for note in self._notes]

    def _passes(self, note: _Note) -> tuple[DecoderCall, ...]:
        read = {0: note.rows} if self._reads_all else note.read
        call = DecoderCall(note.rows, note.cached, self._source, sum(read.values()), heads=len(read))
        if note.layers:
            return (replace(call, layers=note.layers, filled=self._depth - note.layers),)
        if self._exit_layer is None:
            return (call,)
        if note.role == "small":
            return (replace(call, layers=self._exit_layer),)
        upper = replace(call, layers=self._depth - self._exit_layer)
        if note.lower is None:
            return (upper,)
        cached, rows = note.lower
        return DecoderCall(rows, cached, self._source, 0, self._exit_layer, heads=0), upper


class _Noting:
    """See `decoding.session.Session`."""

    def __init__(self, session: Any, role: str, notes: list[_Note], lower: Any = None) -> None:
        self._session, self._role, self._notes, self._lower = session, role, notes, lower

    @property
    def length(self) -> int:
        return int(self._session.length)

    def extend(self, tokens: Sequence[int]) -> Any:
        note = _Note(self._role, self.length, len(tokens))
        if self._lower is not None:
            unseen = self.length + len(tokens) - self._lower.length
            note.lower = (self._lower.length, unseen) if unseen > 0 else None
        self._notes.append(note)
        return _Rows(self._session.extend(tokens), _reading(note, 0))

    def truncate(self, length: int) -> None:
        self._session.truncate(length)


class _NotingLayers:
    """See `decoding.session.LayeredSession`."""

    def __init__(self, session: Any, notes: list[_Note]) -> None:
        self._session, self._notes = session, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def embed(self, tokens: Sequence[int]) -> None:
        self._notes.append(_Note("large", self._session.length, len(tokens)))
        self._session.embed(tokens)

    def run_layer(self) -> None:
        self._notes[-1].layers += 1
        self._session.run_layer()

    def rows(self) -> Any:
        note = self._notes[-1]
        return _Rows(self._session.rows(), _reading(note, note.layers))


def _reading(note: _Note, layer: int) -> Callable[[int, str], None]:
    def read(rows: int, what: str) -> None:
        note.read[layer] = max(rows, note.read.get(layer, 0))
        note.scored = note.scored or what != "argmax"

    return read


class _Rows:
    """Rows that note that they were read; see `decoding.session.Rows`."""

    def __init__(self, rows: Any, read: Callable[[int, str], None]) -> None:
        self._rows, self._read = rows, read

    def __len__(self) -> int:
        return len(self._rows)

    def __getattr__(self, name: str) -> Any:
        self._read(len(self._rows), name)
        return getattr(self._rows, name)

    def last(self) -> Any:
        return _Rows(self._rows.last(), self._read)
