"""Times single calls of a pair's models, apart from the timed texts: what `call_costs` predicts from."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bild_bench.decoding.records import Limits
from bild_bench.measure.call_costs import CallCosts
from bild_bench.measure.clock import now
from bild_bench.models.pair import Pair, Source

# Short and long contexts, between which costs are taken to be linear, and rows of each model.
CONTEXTS = (4, 64)
ROWS = {"large": (1, 2, 4, 8, 16), "small": (1, 2, 4)}
# As many rounds as fit into these seconds: quick calls need more of them for a steady median.
_SECONDS, _LEAST_ROUNDS, _MOST_ROUNDS = 3.0, 9, 101

# What is timed: role, whether the rows' probabilities are read, cached tokens, rows.
Kind = tuple[str, bool, int, int]
_K = TypeVar("_K")


def bench_calls(pair: Pair, source: Source, limits: Limits) -> dict[str, CallCosts]:
    """Each model's costs; `loop` is left at 0.

    Args:
        pair: the models to measure.
        source: a source text of ordinary length.
        limits: for the start token.
    """
    bench = _Bench(pair, source, limits)
    roles = list(pair.models)
    kinds = [
        (role, scored, context, rows)
        for role in roles
        for context in CONTEXTS
        for scored in (False, True)
        for rows in ROWS[role.partition(":")[0]]
    ]
    enabled = gc.isenabled()
    gc.disable()
    try:
        solo = _medians(kinds, bench.repeated)
        first = _medians(roles, bench.first)
        turns = _medians([(role, True, CONTEXTS[0], 1) for role in roles], bench.once) if len(roles) > 1 else {}
    finally:
        if enabled:
            gc.enable()
    turn = {role: seconds for (role, *_), seconds in turns.items()}
    length = int(source.ids.shape[1])
    return {role: costs_of(role, length, solo, first[role], turn.get(role)) for role in roles}


class _Bench:
    """Sessions of both models at both contexts, and the calls that are timed on them."""

    def __init__(self, pair: Pair, source: Source, limits: Limits) -> None:
        self.pair, self.limits = pair, limits
        self.encoded = {role: pair.encode(role, source) for role in pair.models}
        self.sessions: dict[tuple[str, int], Any] = {}
        for role in pair.models:
            for context in CONTEXTS:
                session = pair.session(role, self.encoded[role], limits)
                # Which ids are fed does not change the cost; the start token is an id that every model knows.
                session.extend([limits.start_id] * context)
                self.sessions[role, context] = session

    def once(self, kind: Kind) -> float:
        """Seconds of one call, whatever was called before."""
        role, scored, context, rows = kind
        session = self.sessions[role, context]
        start = now(self.pair.device)
        fed = session.extend([self.limits.start_id] * rows)
        # A token that is merely taken needs no probability; what is tested does.
        fed.max_prob() if scored else fed.argmax()
        seconds = now(self.pair.device) - start
        session.truncate(context)
        return seconds

    def repeated(self, kind: Kind) -> float:
        """Seconds of a call after one of its own kind, which has brought the weights back into the caches."""
        self.once(kind)
        return self.once(kind)

    def first(self, role: str) -> float:
        """Seconds of a session's opening and its first token, with the weights in the caches."""
        self.once((role, False, CONTEXTS[0], 1))
        start = now(self.pair.device)
        self.pair.session(role, self.encoded[role], self.limits).extend([self.limits.start_id]).argmax()
        return now(self.pair.device) - start


def _medians(kinds: Sequence[_K], seconds: Callable[[_K], float]) -> dict[_K, float]:
    """The median of each kind over rounds that take all kinds in turn, so that drift hits all alike."""
    found: dict[_K, list[float]] = {kind: [] for kind in kinds}
    for kind in kinds:
        seconds(kind)
    once = max(sum(seconds(kind) for kind in kinds), 1e-6)
    for _ in range(min(_MOST_ROUNDS, max(_LEAST_ROUNDS, round(_SECONDS / once)))):
        for kind in kinds:
            found[kind].append(seconds(kind))
    return {kind: statistics.median(times) for kind, times in found.items()}


def costs_of(role: str, source: int, solo: Mapping[Kind, float], first: float, turn: float | None) -> CallCosts:
    """One model's costs from what was timed.

    Args:
        role: the model's.
        source: source tokens.
        solo: seconds of calls among their own kind.
        first: of opening a session and its first token.
        turn: of a scored one-row call at the short context after one of the other model; None where there is none.
    """
    tables: dict[bool, dict[int, dict[int, float]]] = {False: {}, True: {}}
    for (owner, scored, context, rows), seconds in solo.items():
        if owner == role:
            tables[scored].setdefault(context, {})[rows] = seconds
    costs = CallCosts(source, tables[False], tables[True])
    opening = max(0.0, first - costs.seconds(1, 0, source, scored=False))
    alone = costs.seconds(1, CONTEXTS[0], source, scored=True)
    return replace(costs, opening=opening, switch=0.0 if turn is None else max(0.0, turn - alone))
