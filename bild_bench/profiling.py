"""What a pair's methods compute and move per token, and whether their latency follows from it: `bild-bench profile`.

Every other text calibrates (what decoding adds to a call, the encoders), and those between are predicted. Only the
models alone calibrate; the times of BiLD and of every other point are predicted without a look at any of theirs.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bild_bench.data import Example
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Limits
from bild_bench.errors import DataError, RunError, UsageError
from bild_bench.measure.call_bench import CallBench
from bild_bench.measure.call_record import Recorded, Recorder
from bild_bench.measure.ceilings import Ceilings, measure_ceilings
from bild_bench.measure.environment import busy_reason, describe_environment
from bild_bench.measure.operations import DecoderCall, Shape, decoder_call, shape_of
from bild_bench.measure.timing import Outcome, time_text
from bild_bench.models.pair import Pair, Source
from bild_bench.passes import warm_up
from bild_bench.plan import Point, make_point, with_baseline
from bild_bench.profile_figures import Bench, Taken, figures
from bild_bench.setup import Announce, Request, Setup, choose, prepare, silent
from bild_bench.thread_choice import computing_on

# Fewer make no steady median; more of them tell nothing new.
_LEAST_ROUNDS, _MOST_ROUNDS = 9, 100
_MOST_REPEATS = 1000

Track = Callable[[Iterable[Example], int, int], Iterable[Example]]


def untracked(texts: Iterable[Example], done: int, total: int) -> Iterable[Example]:
    """A `Track` that shows nothing."""
    return texts


@computing_on(None)
def profile(
    request: Request,
    points: Sequence[Point],
    *,
    repeats: int = 3,
    announce: Announce = silent,
    track: Track = untracked,
) -> dict[str, Any]:
    """Decode texts by the models alone and by all points; set operations, ceilings and times against one another.

    Args:
        request: task, data, pair and machine settings. Tokens are chosen, not drawn.
        points: what is profiled, beside the large model alone and, where a point uses it, the small one.
        repeats: how often each text is decoded; its median time counts.
        announce: called with one line before something slow.
        track: wraps the texts, to show progress.

    Returns:
        JSON values; docs/PROFILE.md describes them.

    Raises:
        UsageError, DataError: before anything is decoded.
        RunError: a model alone, or a point, decoded no text.
    """
    check(request, points, repeats)
    points = with_models_alone(points)
    setup = prepare(request, points, *choose(request, points), announce)
    texts = [example for example in setup.examples.examples if example.source.strip()]
    if len(texts) < 2:
        fix = "give more texts: one half calibrates, the other is predicted"
        raise DataError("--data", setup.examples.label, "has fewer than 2 texts that are not empty", fix)
    environment = describe_environment(setup.pair.device)
    shapes, ceilings, calls = _bench(setup, [_source(setup, example) for example in texts[::2]], announce)
    taken: list[Taken] = []
    errors: list[str] = []
    for number, example in enumerate(track(texts, 0, len(texts))):
        for _ in range(rounds_before(number, len(texts))):
            calls.round()
        order = random.Random(f"{request.seed}/{example.id}")
        outcomes = _outcomes(setup, shapes, _source(setup, example), order, repeats)
        for point, found in outcomes.items():
            if isinstance(found, str):
                errors.append(f"{point.label}, {example.id}: {found}")
            else:
                taken.append(replace(found, held_out=number % 2 == 1))
    _require_texts(setup.points, taken, errors)
    after = describe_environment(setup.pair.device)
    busy = busy_reason(_number(environment["load"]), _number(after["load"]), int(str(environment["threads"])))
    return {
        **_described(setup, len(texts), repeats),
        "environment": environment | {"busy": busy},
        "errors": errors,
        **figures(Bench(shapes, ceilings, calls.costs(), calls.drift()), setup.points, taken),
    }


def rounds_before(number: int, texts: int) -> int:
    """Rounds of single calls before text `number` of `texts`: ten in all with few texts, a hundred with many."""
    return -(-_LEAST_ROUNDS // texts) if number % -(-texts // _MOST_ROUNDS) == 0 else 0


def with_models_alone(points: Sequence[Point]) -> list[Point]:
    """Vanilla first, then the small model alone where a point uses one: they calibrate what the others are held to."""
    models = [make_point("small", {})] if any("small" in point.method.uses for point in points) else []
    return list(dict.fromkeys([*with_baseline(models), *with_baseline(points)]))


def check(request: Request, points: Sequence[Point], repeats: int) -> None:
    """All that can be said of a profile before anything is read or written.

    Raises:
        UsageError: it cannot be.
    """
    if request.limit == 1:
        raise UsageError("--limit", 1, "leaves no text to predict (allowed: 2 or more)", "raise it")
    if repeats < 1:
        raise UsageError("--repeats", repeats, "must be 1 or more", "leave it out for 3")
    if repeats > _MOST_REPEATS:
        raise UsageError("--repeats", repeats, f"must be at most {_MOST_REPEATS:,}", "leave it out for 3")
    for point in points:
        if point.method.opens == "library":
            fix = "leave it out, or measure it with bild-bench run"
            raise UsageError("--mode", point.method.name, "cannot be profiled: its model calls are not visible", fix)


def _source(setup: Setup, example: Example) -> Source:
    return setup.pair.tokenise(example.source, setup.task.source_limit)


def _bench(
    setup: Setup, calibrating: Sequence[Source], announce: Announce
) -> tuple[dict[str, Shape], Ceilings, CallBench]:
    """Shapes, ceilings, and single calls to be timed behind a source of the calibration texts' median length."""
    pair = setup.pair
    shapes = {role: shape_of_model(pair, role) for role in pair.models}
    warm_up(setup)
    announce("measuring memory bandwidth and peak FLOP/s")
    ceilings = measure_ceilings(pair.device, pair.dtype, {role: _weights(shape) for role, shape in shapes.items()})
    calls = CallBench(pair, _typical(pair, calibrating), setup.limits, len(setup.points))
    calls.round()
    calls.forget()
    return shapes, ceilings, calls


def _typical(pair: Pair, sources: Sequence[Source]) -> Source:
    """The source of median length, or the nearest in length that every encoder takes."""
    lengths = sorted(int(source.ids.shape[1]) for source in sources)
    middle = lengths[len(lengths) // 2]
    nearest = sorted(sources, key=lambda source: abs(int(source.ids.shape[1]) - middle))
    for source in nearest:
        try:
            for key in pair.models:
                pair.encode(key, source)
        # Its own row among the errors tells why.
        except Exception:
            continue
        return source
    return nearest[0]


def shape_of_model(pair: Pair, role: str) -> Shape:
    """What the formulas need of one of a pair's models.

    Raises:
        DataError: see `operations.shape_of`.
    """
    import transformers

    from bild_bench.models.special_ids import vocabulary_of

    loaded = pair.models[role]
    config = transformers.AutoConfig.from_pretrained(
        loaded.checkpoint.path, local_files_only=True, trust_remote_code=False
    )
    vocabulary = None if loaded.model.kind == "reference" else vocabulary_of(pair.tokenizer)
    name = loaded.checkpoint.name
    return shape_of(config, vocabulary=vocabulary, dtype=pair.dtype, name=name, option=f"--{role}")


def _weights(shape: Shape) -> int:
    """Bytes of weights that a one-token call reads."""
    return decoder_call(shape, DecoderCall(1, 0, 0, 1)).weight_bytes


def _outcomes(
    setup: Setup, shapes: Mapping[str, Shape], source: Source, order: random.Random, repeats: int
) -> dict[Point, Taken | str]:
    """Each point's outcome on one text: timed as in an experiment, its calls noted in a further decoding untimed."""
    timed: dict[Point, list[Outcome]] = {point: [] for point in setup.points}
    for _ in range(repeats):
        shuffled = order.sample(setup.points, len(setup.points))
        for outcome in time_text(setup.pair, source, shuffled, setup.limits):
            timed[outcome.point].append(outcome)
    return {point: _taken(setup, shapes, source, point, outcomes) for point, outcomes in timed.items()}


def _taken(
    setup: Setup, shapes: Mapping[str, Shape], source: Source, point: Point, outcomes: Sequence[Outcome]
) -> Taken | str:
    error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if error is not None:
        return error
    decoded = outcomes[0].decoded
    assert decoded is not None
    return Taken(
        point=point,
        generated=len(decoded.tokens),
        source=int(source.ids.shape[1]),
        encode_seconds=statistics.median(o.encode_seconds for o in outcomes if o.encode_seconds is not None),
        decode_seconds=statistics.median(o.decode_seconds for o in outcomes if o.decode_seconds is not None),
        small_calls=decoded.counters.small_calls or 0,
        large_calls=decoded.counters.large_calls or 0,
        calls=tuple(record(setup.pair, shapes, source, point, setup.limits)),
    )


def record(pair: Pair, shapes: Mapping[str, Shape], source: Source, point: Point, limits: Limits) -> list[Recorded]:
    """Decode a text once more, outside all clocks, and note every call of both models."""
    from bild_bench.models.opening import open_sessions

    seen = pair.using(point.models)
    encoded = {role: seen.encode(role, source) for role in point.models}
    # The library's modules project every row; so do rules, which look at whole rows.
    reads_all = bool(pair.rules.applied) or any(shapes[role].reads_all for role in point.models)
    exit_layer = point.settings.exit_layer if point.method.opens == "early-exit" else None
    depth = shapes["large"].decoder.layers if "large" in shapes else 0
    recorder = Recorder(depth, int(source.ids.shape[1]), exit_layer, reads_all)
    sessions = open_sessions(seen, point.method, point.settings, source, encoded, limits)
    point.method.decode(recorder.wrap(sessions), point.settings, limits, Greedy())
    return recorder.calls()


def _require_texts(points: Sequence[Point], taken: Sequence[Taken], errors: Sequence[str]) -> None:
    for point in points:
        if {one.held_out for one in taken if one.point == point} != {False, True}:
            problem = f"decoded no text of one half (first error: {errors[0] if errors else 'none'})"
            raise RunError("texts", point.label, problem, "raise --limit, or fix what fails")


def _described(setup: Setup, texts: int, repeats: int) -> dict[str, Any]:
    request = setup.request
    return {
        "command": request.command,
        "task": setup.task.name,
        "data_label": setup.examples.label,
        "split": setup.examples.split,
        "texts": texts,
        "calibration_texts": texts - texts // 2,
        "held_out_texts": texts // 2,
        "repeats": repeats,
        "seed": request.seed,
        "dtype": setup.pair.dtype,
        "pair": setup.pair.describe(),
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
