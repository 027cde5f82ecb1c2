"""What a user waits for: whole texts, from the source's ids to the last token; and the encoder alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from bench import baselines
from bench.ceiling import limit_contestant
from bench.figures import SEED, Figure, figure, missing
from bench.interleave import Contestant, Text, Turn, interleave, seconds_of
from bench.shapes import Announce, Subject
from bench.steps import LIBRARY, LIMIT, OURS, shape_of_large
from bild_bench.decoding.alone import AloneSettings, vanilla
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.session import Sessions
from bild_bench.measure.ceilings import peak_flops
from bild_bench.measure.clock import now
from bild_bench.measure.operations import encoding
from bild_bench.models.pair import Source

CTRANSLATE2 = "CTranslate2 float32"


def whole_figures(subject: Subject, cache: Path, threads: int, announce: Announce) -> list[Figure]:
    """Vanilla with its encoder over `generate` and over CTranslate2 with theirs; for the record.

    Args:
        subject, cache, threads, announce: see `steps.vanilla_figures`.
    """
    contestants = {OURS: ours(subject), LIBRARY: library(subject)}
    generate, absent = baselines.ctranslate2_generate(subject, cache, threads, "float32", announce), ""
    if isinstance(generate, str):
        absent = generate
    else:
        contestants[CTRANSLATE2] = timed(subject, generate)
    announce(f"{subject.shape}: whole texts, {len(subject.texts)} of them")
    repeats = 1 if subject.fixed else 3
    turns = interleave(subject.texts, contestants, seed=SEED, repeats=repeats, warm=not subject.fixed)
    return whole_rows(subject.shape, turns, absent, subject.ends)


def whole_rows(shape: str, turns: Mapping[str, Sequence[Turn]], absent: str, ends: frozenset[int]) -> list[Figure]:
    """The rows of `whole_figures`, from everyone's turns; `absent`: why CTranslate2 has none."""
    what, own, same = "vanilla with its encoder", seconds_of(turns[OURS]), baselines.same_tokens(turns, OURS, ends)
    rows = []
    for name in (LIBRARY, CTRANSLATE2):
        if name in turns:
            times = seconds_of(turns[name])
            note = f"same tokens on {same[name]} of {len(own)} texts; {_ms(times)} and {_ms(own)} ms per text"
            rows.append(figure(what, shape, f"over {name}", times, own, note=note))
        else:
            rows.append(missing(what, shape, f"over {name}", absent))
    return rows


def encoder_figures(subject: Subject, announce: Announce) -> list[Figure]:
    """The library's encoder over ours, and ours over the time of its arithmetic or of its bytes.

    Ours has projected the source's keys and values for the decoder when it is done, which the library has not.
    """
    pair = subject.pair
    module = pair.library["large"].encoder
    # As the limit of one step: the same for all texts of a shape's own length, and of the mean length otherwise.
    length = round(sum(len(text.ids) for text in subject.texts) / len(subject.texts))
    contestants: dict[str, Contestant] = {
        OURS: _alone(subject, pair.models["large"].model.encode),
        LIBRARY: _alone(subject, lambda ids: module(input_ids=ids, attention_mask=torch.ones_like(ids))),
        LIMIT: limit_contestant(encoding(shape_of_large(subject), length), peak_flops("cpu", "float32")),
    }
    announce(f"{subject.shape}: encoders, {len(subject.texts)} texts")
    turns = interleave(subject.texts, contestants, seed=SEED, repeats=5, warm=True)
    own, theirs, limit = (seconds_of(turns[name]) for name in (OURS, LIBRARY, LIMIT))
    told = f"{length} source tokens" if subject.fixed else f"{length} source tokens on average"
    note = f"{told}; {_ms(theirs)} and {_ms(own)} ms"
    return [
        figure("encoder", subject.shape, "over transformers' encoder", theirs, own, note=note),
        figure("encoder", subject.shape, f"of {LIMIT}", own, limit, bound="at most", note=f"limit {_ms(limit)} ms"),
    ]


def _alone(subject: Subject, encode: Callable[[Tensor], object]) -> Contestant:
    @torch.inference_mode()
    def run(text: Text, tokens: int) -> tuple[int, ...]:
        encode(baselines.source_of(text, subject.pair.device))
        return ()

    return timed(subject, run)


def ours(subject: Subject) -> Contestant:
    """Our encoder and greedy search."""
    pair, limits = subject.pair, baselines.limits_of(subject, subject.tokens)

    def generate(text: Text, tokens: int) -> tuple[int, ...]:
        encoded = pair.encode("large", Source(baselines.source_of(text, pair.device), truncated=False))
        sessions = Sessions(large=pair.session("large", encoded, limits))
        return tuple(vanilla(sessions, AloneSettings(), limits, Greedy()).tokens)

    return timed(subject, generate)


def library(subject: Subject) -> Contestant:
    """transformers' `generate` as a user calls it, greedily; without the start token, which it repeats."""
    pair = subject.pair

    @torch.inference_mode()
    def generate(text: Text, tokens: int) -> tuple[int, ...]:
        ids = baselines.source_of(text, pair.device)
        search = {"num_beams": 1, "do_sample": False, "max_new_tokens": tokens, "max_length": None}
        output = pair.library["large"].generate(inputs=ids, attention_mask=torch.ones_like(ids), **search)
        return tuple(output[0].tolist()[1:])

    return timed(subject, generate)


def timed(subject: Subject, generate: baselines.Generate) -> Contestant:
    """Seconds of a whole text."""

    def contestant(text: Text) -> Turn:
        start = now(subject.pair.device)
        tokens = generate(text, subject.tokens)
        return Turn(now(subject.pair.device) - start, tokens)

    return contestant


def _ms(seconds: Sequence[float]) -> str:
    return f"{1000 * sum(seconds) / len(seconds):.2f}"
