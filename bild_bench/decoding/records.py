"""What a decoding method returns: its tokens, integer counters, and the events the trace is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple


@dataclass(frozen=True)
class Limits:
    """Where every method starts and stops.

    Args:
        max_tokens: generated tokens at most, the end token included (>= 1).
        start_id: the decoder's start token; fed first and never counted.
        end_ids: ids that end a text.
    """

    max_tokens: int
    start_id: int
    end_ids: frozenset[int]


@dataclass(frozen=True)
class Counters:
    """Integers counted in the decoding loop; None where a peer does not tell.

    generated = drafted - discarded + large_tokens, for every method of ours.
    """

    generated: int | None = None
    small_calls: int | None = None
    large_calls: int | None = None
    drafted: int | None = None
    discarded: int | None = None
    large_tokens: int | None = None
    fallbacks: int | None = None
    cap_handovers: int | None = None
    start_calls: int | None = None
    tail_checks: int | None = None
    rollbacks: int | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The counters' names, in the order of the Parquet columns."""
        return tuple(field.name for field in fields(cls))

    def as_dict(self) -> dict[str, int | None]:
        """Name to value, in the order of `names`."""
        return asdict(self)


class TraceStep(NamedTuple):
    """One token that was put into the text, whether it stayed or not.

    position: 0 for the first generated token. author: "S" or "L". kept: False when it was cut by a rollback.
    small_max_prob: max p_S before warping, of the step that drafted here (None where S was not asked).
    large_nll: -ln p_L(token), in nats (None where L did not score it).
    """

    position: int
    token: int
    author: str
    kept: bool
    small_max_prob: float | None
    large_nll: float | None


@dataclass(slots=True)
class Entry:
    """One token that was generated; `kept` turns False when it is cut."""

    position: int
    token: int
    author: str
    small_max_prob: float | None
    large_nll: float | None
    kept: bool = True


@dataclass(frozen=True)
class Decoded:
    """The outcome of one text.

    Args:
        tokens: generated ids, without the start token, the end token included where there is one.
        counters: see `Counters`.
        hit_limit: the text ended at `Limits.max_tokens` and not by an end token.
        entries: the raw record that `trace` is built from, after the clock has stopped.
        exit_layers: how many kept tokens were decided at layer 1, 2, …; None for methods that do not exit early.
    """

    tokens: tuple[int, ...]
    counters: Counters
    hit_limit: bool
    entries: tuple[Entry, ...] = ()
    exit_layers: tuple[int, ...] | None = None

    def trace(self) -> tuple[TraceStep, ...]:
        """Every token ever put into the text, in the order in which it was put there."""
        return tuple(
            TraceStep(e.position, e.token, e.author, e.kept, e.small_max_prob, e.large_nll) for e in self.entries
        )


def generated_tokens(ids: Sequence[int], limits: Limits) -> tuple[int, ...]:
    """The generated tokens of an output, by one rule for all methods and peers.

    Args:
        ids: an output with or without the start token in front, padded or not.
        limits: the end tokens, the limit and the start token.

    Returns:
        Every token after the start token, up to and with the first end token, `max_tokens` at most.
    """
    tokens = list(ids[1:] if ids and ids[0] == limits.start_id else ids)[: limits.max_tokens]
    for index, token in enumerate(tokens):
        if token in limits.end_ids:
            return tuple(tokens[: index + 1])
    return tuple(tokens)
