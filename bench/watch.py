"""Sessions that add up the time spent inside the models, for the share that everything else takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Inside:
    """Seconds inside the models' passes and the readings of their rows."""

    seconds: float = 0.0


class WatchedSession:
    """A session whose passes are timed; see `decoding.session.Session`.

    Rows are projected when they are first read, and a reading is the step's one transfer from the device and its
    choice of a token: readings count as inside.
    """

    def __init__(self, session: Any, inside: Inside) -> None:
        self._session, self._inside = session, inside

    @property
    def length(self) -> int:
        return int(self._session.length)

    def extend(self, tokens: Sequence[int]) -> WatchedRows:
        start = time.perf_counter()
        rows = self._session.extend(tokens)
        self._inside.seconds += time.perf_counter() - start
        return WatchedRows(rows, self._inside)

    def truncate(self, length: int) -> None:
        self._session.truncate(length)


class WatchedRows:
    """Rows whose readings are timed; see `decoding.session.Rows`."""

    def __init__(self, rows: Any, inside: Inside) -> None:
        self._rows, self._inside = rows, inside

    def __len__(self) -> int:
        return len(self._rows)

    def last(self) -> WatchedRows:
        return WatchedRows(self._rows.last(), self._inside)

    def argmax(self) -> Any:
        start = time.perf_counter()
        found = self._rows.argmax()
        self._inside.seconds += time.perf_counter() - start
        return found

    def max_prob(self) -> Any:
        start = time.perf_counter()
        found = self._rows.max_prob()
        self._inside.seconds += time.perf_counter() - start
        return found

    def logprob(self, tokens: Sequence[int], first: int = 0) -> Any:
        start = time.perf_counter()
        found = self._rows.logprob(tokens, first)
        self._inside.seconds += time.perf_counter() - start
        return found
