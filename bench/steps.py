"""Single models: vanilla against its baselines and the limit, a step of 8 tokens against one, and the time outside."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bench import baselines
from bench.ceiling import limit_contestant, step_of
from bench.figures import SEED, Figure, figure, missing
from bench.interleave import Contestant, Text, Turn, interleave, once_a_text, seconds_of
from bench.shapes import Announce, Subject
from bench.watch import Inside, WatchedSession
from bild_bench.decoding.methods import find_method
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.session import Sessions
from bild_bench.measure.ceilings import peak_flops
from bild_bench.measure.clock import now
from bild_bench.measure.operations import Shape, shape_of
from bild_bench.models.pair import Pair
from bild_bench.models.reference import ReferenceModel
from bild_bench.models.special_ids import vocabulary_of

OURS, LIBRARY, LIMIT = "bild-bench", "transformers generate", "machine's limit"
VERIFIED = 8
# Tokens in the cache before a step is timed, and steps per turn, whose median counts.
_CONTEXT, _STEPS = 16, 5

# Shape -> what is to be reached there; shapes that are not named are measured for the record.
OVER_LIBRARY = {"t5-small": 1.6, "t5-large": 2.0, "embedded": 4.0}
OVER_CTRANSLATE2 = {"t5-small": 1.0, "t5-large": 1.0, "embedded": 1.0}
OVER_LIMIT = {"t5-large": 1.25}
VERIFICATION = {"t5-large": 1.5, "embedded": 1.5}
OUTSIDE = {"t5-small": 0.03, "t5-large": 0.03, "embedded": 0.15}


def vanilla_figures(subject: Subject, cache: Path, threads: int, announce: Announce) -> list[Figure]:
    """Our vanilla over `generate`, over CTranslate2 in each precision, and over the limit.

    Args:
        subject: what is decoded.
        cache: for converted models.
        threads: CTranslate2's; torch's are set.
        announce: called with one line before something slow.
    """
    shape = shape_of_large(subject)
    contestants: dict[str, Contestant] = {
        OURS: baselines.our_vanilla(subject),
        LIBRARY: baselines.library_greedy(subject),
        LIMIT: limit_contestant(step_of(shape, 1), peak_flops("cpu", "float32")),
    }
    absent = {}
    for kind in baselines.COMPUTE_TYPES:
        found = baselines.ctranslate2_greedy(subject, cache, threads, kind, announce)
        if isinstance(found, str):
            absent[kind] = found
        else:
            contestants[_ctranslate2(kind)] = found
    announce(f"{subject.shape}: vanilla, {len(subject.texts)} texts")
    # Short texts are cheap, and noisier.
    repeats = 1 if subject.fixed else 3
    turns = interleave(subject.texts, contestants, seed=SEED, repeats=repeats, warm=not subject.fixed)
    return vanilla_rows(subject.shape, turns, absent, subject.ends)


def vanilla_rows(
    shape: str, turns: Mapping[str, Sequence[Turn]], absent: Mapping[str, str], ends: frozenset[int]
) -> list[Figure]:
    """The rows of `vanilla_figures`, from everyone's turns; the limit's turns are of one step."""
    own, same = seconds_of(turns[OURS]), baselines.same_tokens(turns, OURS, ends)

    def over(name: str, target: float | None) -> Figure:
        note = f"same tokens on {same[name]} of {len(own)} texts"
        return figure("vanilla", shape, f"over {name}", seconds_of(turns[name]), own, target=target, note=note)

    rows = [over(LIBRARY, OVER_LIBRARY.get(shape))]
    for kind in baselines.COMPUTE_TYPES:
        # int8 rounds the weights, so it is another model: for the record.
        target = OVER_CTRANSLATE2.get(shape) if kind == "float32" else None
        if kind in absent:
            rows.append(missing("vanilla", shape, f"over {_ctranslate2(kind)}", absent[kind], target=target))
        else:
            rows.append(over(_ctranslate2(kind), target))
    # The first token is in nobody's time.
    steps = [max(0, len(turn.tokens) - 1) for turn in turns[OURS]]
    limit = [each * turn.seconds for each, turn in zip(steps, turns[LIMIT], strict=True)]
    count = max(1, sum(steps))
    note = f"{1000 * sum(own) / count:.2f} ms per token, limit {1000 * sum(limit) / count:.2f} ms"
    target = OVER_LIMIT.get(shape)
    return [*rows, figure("vanilla step", shape, f"of {LIMIT}", own, limit, target=target, bound="at most", note=note)]


def verification_figures(subject: Subject, announce: Announce) -> list[Figure]:
    """A pass over 8 tokens over a pass over one: ours, and the library's modules; and ours over its limit."""
    pair = subject.pair
    modules = ReferenceModel(pair.library["large"], vocabulary_of(pair.tokenizer), pair.special.start)
    opened: dict[str, Callable[[Text], Any]] = {
        OURS: _sessions(pair.models["large"].model, pair),
        "transformers' modules": _sessions(modules, pair),
    }
    contestants = {
        f"{name}/{rows}": _step(session, pair, rows) for name, session in opened.items() for rows in (1, VERIFIED)
    }
    contestants[LIMIT] = limit_contestant(step_of(shape_of_large(subject), VERIFIED), peak_flops("cpu", "float32"))
    announce(f"{subject.shape}: steps of {VERIFIED} tokens and of one")
    turns = interleave(subject.texts, contestants, seed=SEED)
    found = []
    for name in opened:
        many, one = (seconds_of(turns[f"{name}/{rows}"]) for rows in (VERIFIED, 1))
        note = f"{1000 * sum(many) / len(many):.2f} and {1000 * sum(one) / len(one):.2f} ms"
        target = VERIFICATION.get(subject.shape) if name == OURS else None
        what = f"{VERIFIED} tokens in a step over one"
        found.append(figure(what, subject.shape, name, many, one, target=target, bound="at most", note=note))
    own, limit = seconds_of(turns[f"{OURS}/{VERIFIED}"]), seconds_of(turns[LIMIT])
    note = f"limit {1000 * sum(limit) / len(limit):.2f} ms"
    over = figure(f"{VERIFIED} tokens in a step", subject.shape, f"of {LIMIT}", own, limit, bound="at most", note=note)
    return [*found, over]


def _sessions(model: Any, pair: Pair) -> Callable[[Text], Any]:
    """Text -> a session with some tokens in its cache."""

    def opened(text: Text) -> Any:
        session = model.session(model.encode(baselines.source_of(text, pair.device)))
        # Which ids are fed does not change the cost.
        session.extend([pair.special.start] * _CONTEXT)
        return session

    return once_a_text(opened)


def _step(sessions: Callable[[Text], Any], pair: Pair, rows: int) -> Contestant:
    """Passes over this many tokens, with what BiLD reads of L: each draft's probability and the next token."""

    token = pair.special.start

    def contestant(text: Text) -> Turn:
        session, seconds = sessions(text), []
        for _ in range(_STEPS):
            start = now(pair.device)
            scores = session.extend([token] * rows)
            scores.logprob([token] * (rows - 1))
            scores.argmax()
            seconds.append(now(pair.device) - start)
            session.truncate(_CONTEXT)
        return Turn(statistics.median(seconds))

    return contestant


def outside_figures(subject: Subject, method: str, settings: Any, announce: Announce) -> list[Figure]:
    """The share of a method's decoding time outside the models' passes and the readings of their rows."""
    uses = find_method(method).uses
    encodings, limits = baselines.our_encodings(subject, uses), baselines.limits_of(subject, subject.tokens)
    announce(f"{subject.shape}: time outside the models, {method}")
    decode = find_method(method).decode
    whole, outside = [], []
    for text in (subject.texts[0], *subject.texts):
        encoded, inside = encodings(text), Inside()
        start = now(subject.pair.device)
        opened: dict[str, Any] = {
            role: WatchedSession(subject.pair.session(role, encoded[role], limits), inside) for role in uses
        }
        decode(Sessions(**opened), settings, limits, Greedy())
        whole.append(now(subject.pair.device) - start)
        outside.append(max(0.0, whole[-1] - inside.seconds))
    target = OUTSIDE.get(subject.shape)
    what = "time outside the models"
    # The first text was decoded twice, to warm up.
    return [figure(what, subject.shape, method, outside[1:], whole[1:], target=target, bound="at most", unit="share")]


def shape_of_large(subject: Subject) -> Shape:
    """The large model's, with the rows of the output projection that our decoder computes."""
    pair = subject.pair
    config, name = pair.library["large"].config, pair.models["large"].checkpoint.name
    vocabulary = vocabulary_of(pair.tokenizer)
    return shape_of(config, vocabulary=vocabulary, dtype=pair.dtype, name=name, option="--pair-large")


def _ctranslate2(kind: str) -> str:
    return f"CTranslate2 {kind}"


def set_threads(threads: int) -> None:
    """For torch and for our decoder, which asks torch."""
    torch.set_num_threads(threads)
