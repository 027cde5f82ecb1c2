"""Times one text: encoders once, then every point in a given order; and the calibration pass for the cost model."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bild_bench.decoding.picking import Greedy, Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.measure.clock import now
from bild_bench.models.opening import open_sessions
from bild_bench.models.pair import Pair, Source
from bild_bench.plan import Point, keys_of

CALIBRATED_ROWS = {"large": (1, 2, 4, 8, 16), "small": (1,)}
_CONTEXT = 16


@dataclass(frozen=True)
class Divergence:
    """The first position where two outputs of one text differ.

    Args:
        position: from 0.
        margin: by how much the large model prefers vanilla's token there over the other one, in logits. A margin of the
            order of rounding is a tie that another order of operations decides otherwise; a larger one is a bug.
    """

    position: int
    margin: float


@dataclass(frozen=True)
class Outcome:
    """One text decoded by one point: either an outcome with its times, or the error that stopped it.

    Args:
        point: which.
        order: its place in the text's order, from 0.
        decoded: tokens, counters and trace; None after an error.
        encode_seconds: of all models the point uses.
        decode_seconds: from the encoded source to the last token on the host, opening the sessions included.
        error: what went wrong, in one line; None if nothing did.
        divergence: where a method that claims vanilla's tokens has others; see `measure.divergence`.
    """

    point: Point
    order: int
    decoded: Decoded | None = None
    encode_seconds: float | None = None
    decode_seconds: float | None = None
    error: str | None = None
    divergence: Divergence | None = None


def time_text(
    pair: Pair, source: Source, points: Sequence[Point], limits: Limits, pickers: Callable[[], Picker] = Greedy
) -> list[Outcome]:
    """Decode one text by every point, in the order given; each point gets a picker of its own.

    An encoding shared by several points is timed once and added to every point that uses that model. An error ends
    one point (or, in an encoder, all points that need it) and never carries over to another.
    """
    with _no_garbage_collection():
        encoded, seconds, errors = _encode(pair, source, keys_of(points))
        outcomes = []
        for order, point in enumerate(points):
            failed = next((errors[key] for key in point.models.values() if key in errors), None)
            if failed is not None:
                outcomes.append(Outcome(point, order, error=failed))
                continue
            encode_seconds, picker = sum(seconds[key] for key in point.models.values()), pickers()
            seen, sources = pair.using(point.models), {role: encoded[key] for role, key in point.models.items()}

            def decode(
                point: Point = point, picker: Picker = picker, seen: Pair = seen, sources: dict[str, Any] = sources
            ) -> Decoded:
                sessions = open_sessions(seen, point.method, point.settings, source, sources, limits)
                return point.method.decode(sessions, point.settings, limits, picker)

            outcomes.append(_decode(pair, point, order, encode_seconds, decode))
    return outcomes


def _encode(pair: Pair, source: Source, keys: Sequence[str]) -> tuple[dict[str, Any], dict[str, float], dict[str, str]]:
    encoded: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    errors: dict[str, str] = {}
    for key in keys:
        start = now(pair.device)
        try:
            encoded[key] = pair.encode(key, source)
        except Exception as error:
            errors[key] = in_one_line(error)
            continue
        seconds[key] = now(pair.device) - start
    return encoded, seconds, errors


def _decode(pair: Pair, point: Point, order: int, encode_seconds: float, decode: Callable[[], Decoded]) -> Outcome:
    start = now(pair.device)
    try:
        decoded = decode()
    # Whatever a model or a method raises is this text's failure and must not end the run.
    except Exception as error:
        return Outcome(point, order, error=in_one_line(error))
    return Outcome(point, order, decoded, encode_seconds, now(pair.device) - start)


def calibrate(pair: Pair, source: Source, limits: Limits, repeats: int = 3) -> dict[str, Any]:
    """Measure what one call costs, apart from the timed texts: the cost model's inputs.

    Args:
        pair: the models to measure.
        source: a source text of ordinary length.
        limits: for the start token.
        repeats: passes for each figure; their median is kept. A run does this at several moments; see `moments`.

    Returns:
        {"source_tokens", "context_tokens", "repeats", role: {"encode_seconds", "rows": {"1": seconds, …}}}

    Raises:
        Exception: whatever the models raise on such a source.
    """
    # A model with a short table of positions has no room for the longest window behind the whole context.
    room = pair.limits(_CONTEXT + max(CALIBRATED_ROWS["large"])).max_tokens
    context = max(1, min(_CONTEXT, room // 2))
    result: dict[str, Any] = {
        "source_tokens": int(source.ids.shape[1]),
        "context_tokens": context,
        "repeats": repeats,
    }
    with _no_garbage_collection():
        for role in pair.models:
            encode = _median_seconds(pair.device, repeats, lambda role=role: pair.encode(role, source))  # type: ignore[misc]
            session = pair.session(role, pair.encode(role, source), limits)
            # Which ids are fed does not change the cost; the start token is an id that every model knows.
            session.extend([limits.start_id] * context)

            def call(rows: int, session: Any = session) -> None:
                session.extend([limits.start_id] * rows).max_prob()
                session.truncate(context)

            costs = {
                str(rows): _median_seconds(pair.device, repeats, lambda rows=rows, call=call: call(rows))  # type: ignore[misc]
                for rows in CALIBRATED_ROWS[role.partition(":")[0]]
                if rows <= max(1, room - context)
            }
            result[role] = {"encode_seconds": encode, "rows": costs}
    return result


def _median_seconds(device: str, repeats: int, call: Callable[[], Any]) -> float:
    call()
    seconds = []
    for _ in range(repeats):
        start = now(device)
        call()
        seconds.append(now(device) - start)
    return statistics.median(seconds)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A collection would land in whichever point is being timed; between texts there is time for it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def in_one_line(error: Exception) -> str:
    """What is kept of a text's failure."""
    return " ".join(f"{type(error).__name__}: {error}".split())
