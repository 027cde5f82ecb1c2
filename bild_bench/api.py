"""For notebooks: load a pair and decode single texts; experiments are in `api_experiments`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench.decoding.picking import Greedy, Picker, Sampling
from bild_bench.decoding.records import Counters, TraceStep
from bild_bench.errors import UsageError

if TYPE_CHECKING:
    from bild_bench.models.pair import Pair

# Characters of a text in its one-line repr.
_SHOWN = 60
# Timed to choose the threads: what a step costs hardly depends on the words.
_TYPICAL = "The quick brown fox jumps over the lazy dog and runs into the forest."


@dataclass(frozen=True)
class Piece:
    """A token as text, with its step of the trace."""

    text: str
    step: TraceStep


@dataclass(frozen=True, repr=False)
class Generated:
    """One decoded text.

    Args:
        text: the output, without special tokens.
        tokens: its ids, the end token included.
        counters: integers counted while it was decoded.
        pieces: every token ever generated, those rolled back included, in that order.
        hit_limit: it ended at the length limit.
        source_truncated: the source was cut to the task's limit.
        unknown_source_tokens: tokens of the source that the tokenizer does not know.
        remarks: what must be known before the text is believed, one line each.
    """

    text: str
    tokens: tuple[int, ...]
    counters: Counters
    pieces: tuple[Piece, ...]
    hit_limit: bool
    source_truncated: bool
    unknown_source_tokens: int = 0
    remarks: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "text": self.text,
            "tokens": list(self.tokens),
            "counters": self.counters.as_dict(),
            "trace": [{"text": piece.text, **piece.step._asdict()} for piece in self.pieces],
            "hit_limit": self.hit_limit,
            "source_truncated": self.source_truncated,
            "unknown_source_tokens": self.unknown_source_tokens,
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        counted = self.counters
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[: _SHOWN - 1]}…"
        return (
            f"Generated({text!r}, {counted.generated} tokens, {counted.large_calls} large and"
            f" {counted.small_calls} small calls, {counted.rollbacks} rollbacks)"
        )


def load_pair(
    task: str = "iwslt17",
    *,
    preset: str | None = None,
    aligned: bool | None = None,
    large: str | Path | None = None,
    small: str | Path | None = None,
    prefix: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    threads: int | None = None,
    session: str = "auto",
    roles: Sequence[str] = ("large", "small"),
    library_roles: Sequence[str] = (),
    announce: Callable[[str], None] = lambda line: None,
) -> Pair:
    """Load the pair for a task; the options are those of `bild-bench run`.

    Args:
        threads: CPU threads that `generate` decodes on; None for those with which the models are fastest.
        roles: the models to load, of "large" and "small".
        library_roles: those of them that are loaded as the library's own models too, for hf-greedy and hf-assisted.

    Raises:
        UsageError: a role that is not known, or a library's copy of a model that is not loaded.
        UsageError, DataError: see `models.choice.choose_pair` and `models.pair.load_pair`.
    """
    import torch

    from bild_bench.checks import check_threads
    from bild_bench.models import pair as pairs
    from bild_bench.models.choice import choose_pair
    from bild_bench.tasks import load_task
    from bild_bench.thread_choice import computing_on, set_fastest

    _check_roles("roles", roles, ("large", "small"))
    _check_roles("library_roles", library_roles, roles)
    found = load_task(task)
    choice = choose_pair(
        found.name, found.kind, preset=preset, aligned=aligned, large=large, small=small, prefix=prefix
    )
    check_threads(threads)
    pair = pairs.load_pair(
        choice, roles, device=device, dtype=dtype, session=session, library_keys=library_roles, announce=announce
    )
    with computing_on(threads):
        if threads is None:
            set_fastest(pair, _TYPICAL, pair.limits(found.target_limit))
        return replace(pair, threads=torch.get_num_threads())


def generate(
    pair: Pair,
    text: str,
    mode: str = "bild",
    *,
    task: str = "iwslt17",
    sampling: Sampling | None = None,
    seed: int = 0,
    **settings: Any,
) -> Generated:
    """Decode one text by any method.

    Args:
        pair: from `load_pair`.
        text: the source.
        mode: a method's name.
        task: whose length limits hold.
        sampling: draw tokens; None for greedy search.
        seed: of the draw, 0 to 2**32 - 1.
        settings: of the method, such as alpha_fb and alpha_rb.

    Raises:
        UsageError: an empty text, a seed out of range, no such mode, a setting that it does not have or of another
            type, models that are not loaded, or sampling where it cannot draw.
        RunError: a model's scores are not finite.
    """
    from bild_bench.checks import check_seed
    from bild_bench.models.opening import check_method, open_sessions
    from bild_bench.models.pieces import pieces_of
    from bild_bench.plan import check_sampling, make_point
    from bild_bench.remarks import remarks_on, unknown_tokens
    from bild_bench.tasks import load_task
    from bild_bench.thread_choice import computing_on

    _check_arguments(pair, text, sampling)
    check_seed(seed)
    point, limits_of = make_point(mode, settings), load_task(task)
    if sampling is not None:
        check_sampling([point])
    limits, source = pair.limits(limits_of.target_limit), pair.tokenise(text, limits_of.source_limit)
    check_method(pair, point.method, point.settings)
    with computing_on(pair.threads):
        encoded = {role: pair.encode(role, source) for role in point.method.uses}
        sessions = open_sessions(pair, point.method, point.settings, source, encoded, limits)
        decoded = point.method.decode(sessions, point.settings, limits, _picker(sampling, seed))
    trace = decoded.trace()
    pieces = tuple(Piece(text, step) for text, step in zip(pieces_of(pair, trace), trace, strict=True))
    return Generated(
        text=pair.text(decoded.tokens),
        tokens=decoded.tokens,
        counters=decoded.counters,
        pieces=pieces,
        hit_limit=decoded.hit_limit,
        source_truncated=source.truncated,
        unknown_source_tokens=unknown_tokens(pair, source),
        remarks=remarks_on(pair, point, source, decoded, limits_of.target_limit),
    )


def _check_roles(option: str, roles: Sequence[str], allowed: Sequence[str]) -> None:
    # A word is a sequence too, of its letters.
    if isinstance(roles, str) or not all(role in allowed for role in roles) or (option == "roles" and not roles):
        example = f'{option}=("{allowed[0]}",)'
        raise UsageError(option, roles, f"must be a list of models (allowed: {', '.join(allowed)})", f"try {example}")


def _check_arguments(pair: object, text: object, sampling: object) -> None:
    from bild_bench.checks import MOST_CHARACTERS
    from bild_bench.models.pair import Pair

    if not isinstance(pair, Pair):
        raise UsageError("pair", pair, "must be what load_pair returned", "try generate(load_pair(), TEXT)")
    if not isinstance(text, str):
        raise UsageError("TEXT", text, "must be a string", "give one text")
    if not text.strip():
        raise UsageError("TEXT", text, "is empty", "give a text to decode")
    if len(text) > MOST_CHARACTERS:
        problem = f"has {len(text):,} characters (allowed: {MOST_CHARACTERS:,})"
        raise UsageError("TEXT", text, problem, "give a shorter one: models read some hundred tokens")
    if sampling is not None and not isinstance(sampling, Sampling):
        fix = "give bild_bench.decoding.picking.Sampling(top_p=0.8), or None for greedy search"
        raise UsageError("sampling", sampling, "must be a Sampling or None", fix)


def _picker(sampling: Sampling | None, seed: int) -> Picker:
    if sampling is None:
        return Greedy()
    from bild_bench.decoding.sampling import Sampler

    return Sampler(sampling, seed)
