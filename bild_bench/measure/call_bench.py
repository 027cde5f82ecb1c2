"""Times single calls of a pair's models, in rounds between the timed texts: what `call_costs` predicts from.

Rounds lie between the texts because a machine's memory is not equally fast at all times: calls that were all timed
before the first text would predict that moment.
"""

from __future__ import annotations

import gc
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bild_bench.decoding.records import Limits
from bild_bench.decoding.session import Session
from bild_bench.errors import DataError
from bild_bench.measure.call_costs import CallCosts
from bild_bench.measure.clock import now
from bild_bench.measure.moments import drift_of
from bild_bench.models.pair import Pair, Source

# Short and long contexts, between which costs are taken to be linear, and rows of each model.
CONTEXTS = (4, 64)
ROWS = {"large": (1, 2, 4, 8, 16), "small": (1, 2, 4)}
# Turns of a model after which the weights that the encoders displaced are taken to be back in the caches.
TURNS = 8
# Calls of a small model in one turn.
DRAFTS = 3
_MOMENTS = 3

# Where a call was timed: after one of its own kind, in a text that the model decodes alone, in one decoded in turns.
OWN, ALONE, TURN, OPENING = "own", "alone", "turn", "opening"


class Kind(NamedTuple):
    """What is timed.

    Args:
        role: whose call.
        place: where it was made, or that a session was opened.
        scored: the rows' probabilities were read, not the best token alone.
        cached, rows: tokens.
        turn: which of the model's turns in its text, from 0; the last stands for all later ones.
    """

    role: str
    place: str
    scored: bool = False
    cached: int = 0
    rows: int = 0
    turn: int = 0


class CallBench:
    """Sessions of both models, and the seconds of calls on them and on fresh ones.

    Args:
        pair: the models to measure.
        source: a source text of ordinary length.
        limits: for the start token.
        decodings: how often a text is decoded behind one run of the encoders, by one point after another.

    Raises:
        DataError: the models' tables of positions are too short for the windows that are timed.
    """

    def __init__(self, pair: Pair, source: Source, limits: Limits, decodings: int = 1) -> None:
        self._pair, self._source, self._limits, self._decodings = pair, source, limits, decodings
        self._sessions: dict[tuple[str, int], Session] = {}
        contexts = _contexts(pair)
        for role in pair.models:
            for context in contexts:
                session = pair.session(role, pair.encode(role, source), limits)
                # Which ids are fed does not change the cost; the start token is an id that every model knows.
                session.extend([limits.start_id] * context)
                self._sessions[role, context] = session
        self._times: dict[Kind, list[float]] = defaultdict(list)
        self._rounds = 0

    def round(self) -> None:
        """Every kind of call once more."""
        enabled = gc.isenabled()
        gc.disable()
        try:
            self._among_own_kind()
            self._in_texts()
        finally:
            if enabled:
                gc.enable()
        self._rounds += 1

    def forget(self) -> None:
        """Drop what was timed so far: first calls of all allocate."""
        self._times.clear()

    def costs(self) -> dict[str, CallCosts]:
        """Each model's costs from all rounds so far; `loop` is left at 0."""
        timed = {kind: statistics.median(seconds) for kind, seconds in self._times.items()}
        length = int(self._source.ids.shape[1])
        return {role: costs_of(role, length, timed) for role in self._pair.models}

    def drift(self) -> float | None:
        """How many times slower calls were in the slowest third of the rounds than in the fastest; see `moments`."""
        own = [seconds for kind, seconds in self._times.items() if kind.place == OWN]
        thirds = [[part for part in np.array_split(seconds, _MOMENTS) if len(part)] for seconds in own]
        return drift_of([[float(np.median(part)) for part in parts] for parts in thirds])

    def _among_own_kind(self) -> None:
        """Each kind of call after others of its model, which have brought the weights back into the caches."""
        for (role, context), session in self._sessions.items():
            for _ in range(TURNS):
                self._call(session, 1, scored=True)
                session.truncate(context)
            # Long windows disorder the caches for the calls after them, so the shortest come first.
            for rows in ROWS[role.partition(":")[0]]:
                for scored in (False, True):
                    for _ in range(2):
                        seconds = self._call(session, rows, scored)
                        session.truncate(context)
                    self._times[Kind(role, OWN, scored, context, rows)].append(seconds)

    def _in_texts(self) -> None:
        """Calls behind the encoders, in texts that each model decodes alone and that both decode in turns."""
        roles = list(self._pair.models)
        together = [roles] * max(1, self._decodings - len(roles)) if len(roles) > 1 else []
        decodings = [*([role] for role in roles), *together]
        encoded = {role: self._pair.encode(role, self._source) for role in roles}
        # No decoding is always the one right behind the encoders.
        first = self._rounds % len(decodings)
        for models in decodings[first:] + decodings[:first]:
            sessions = {}
            for role in models:
                start = now(self._pair.device)
                sessions[role] = self._pair.session(role, encoded[role], self._limits)
                self._times[Kind(role, OPENING)].append(now(self._pair.device) - start)
            self._decode(sessions)

    def _decode(self, sessions: Mapping[str, Session]) -> None:
        """A text: drafts, a window of the large model's, drafts, and so on; or one model alone."""
        place = ALONE if len(sessions) == 1 else TURN
        for turn in range(TURNS):
            for role in sorted(sessions, key="large".__eq__):
                windows, session = ROWS["large"], sessions[role]
                calls = [1] if place == ALONE else [1] * DRAFTS
                if place == TURN and role == "large":
                    calls = [windows[(turn + self._rounds) % len(windows)]]
                for rows in calls:
                    kind = Kind(role, place, True, session.length, rows, turn)
                    self._times[kind].append(self._call(session, rows, scored=True))
                # One window's length is no other's context.
                session.truncate(CONTEXTS[0])

    def _call(self, session: Session, rows: int, scored: bool) -> float:
        """Seconds of one call, whatever was called before."""
        start = now(self._pair.device)
        fed = session.extend([self._limits.start_id] * rows)
        # A token that is merely taken needs no probability; what is tested does, and so does each draft of a window.
        fed.max_prob() if scored else fed.argmax()
        if scored and rows > 1:
            fed.logprob([self._limits.start_id] * (rows - 1))
        return now(self._pair.device) - start


def _contexts(pair: Pair) -> tuple[int, int]:
    """`CONTEXTS`, the long one cut to what the models have positions for."""
    (short, long), longest = CONTEXTS, max(ROWS["large"])
    room = pair.limits(long + longest).max_tokens
    if room < 2 * short + longest:
        problem = f"calls of {longest} tokens behind {2 * short} cannot be timed with so few positions"
        raise DataError("--large and --small", room, problem, "use models whose position table is longer")
    return short, min(long, room - longest)


def costs_of(role: str, source: int, timed: Mapping[Kind, float]) -> CallCosts:
    """One model's costs from what was timed.

    Args:
        role: the model's.
        source: source tokens.
        timed: seconds of each kind, of both models.
    """
    own = {kind: seconds for kind, seconds in timed.items() if kind.role == role}
    tables: dict[bool, dict[int, dict[int, float]]] = {False: {}, True: {}}
    for kind, seconds in own.items():
        if kind.place == OWN:
            tables[kind.scored].setdefault(kind.cached, {})[kind.rows] = seconds
    costs = CallCosts(source, tables[False], tables[True], opening=own[Kind(role, OPENING)])
    beyond = {
        kind: seconds - costs.seconds(kind.rows, kind.cached, source, scored=True)
        for kind, seconds in own.items()
        if kind.place in (ALONE, TURN)
    }
    drafts = 1 if role == "large" else DRAFTS
    return replace(costs, alone=_by_turn(beyond, ALONE, 1), turns=_by_turn(beyond, TURN, drafts))


def _by_turn(beyond: Mapping[Kind, float], place: str, calls: int) -> Sequence[float]:
    """Extra seconds per turn, of this many calls, over calls after their own kind; empty without such a place."""
    turns: dict[int, list[float]] = {}
    for kind, seconds in beyond.items():
        if kind.place == place:
            turns.setdefault(kind.turn, []).append(seconds)
    return tuple(calls * statistics.mean(turns[turn]) for turn in sorted(turns))
