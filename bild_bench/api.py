"""For notebooks: the same pairs, methods and experiments as on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bild_bench.decoding.picking import Greedy, Picker, Sampling
from bild_bench.decoding.records import Counters, TraceStep
from bild_bench.errors import UsageError

if TYPE_CHECKING:
    from bild_bench.models.pair import Pair
    from bild_bench.results import Experiment


@dataclass(frozen=True)
class Piece:
    """A token as text, with its step of the trace."""

    text: str
    step: TraceStep


@dataclass(frozen=True)
class Generated:
    """One decoded text.

    Args:
        text: the output, without special tokens.
        tokens: its ids, the end token included.
        counters: integers counted while it was decoded.
        pieces: every token ever written, those rolled back included, in that order.
        hit_limit: it ended at the length limit.
        source_truncated: the source was cut to the task's limit.
    """

    text: str
    tokens: tuple[int, ...]
    counters: Counters
    pieces: tuple[Piece, ...]
    hit_limit: bool
    source_truncated: bool

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "text": self.text,
            "tokens": list(self.tokens),
            "counters": self.counters.as_dict(),
            "trace": [{"text": piece.text, **piece.step._asdict()} for piece in self.pieces],
            "hit_limit": self.hit_limit,
            "source_truncated": self.source_truncated,
        }


def load_pair(
    task: str = "iwslt17",
    *,
    preset: str | None = None,
    aligned: bool = False,
    large: str | None = None,
    small: str | None = None,
    prefix: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    session: str = "auto",
    roles: Sequence[str] = ("large", "small"),
    library_roles: Sequence[str] = (),
    announce: Callable[[str], None] = lambda line: None,
) -> Pair:
    """Load the pair for a task; the options are those of `bild-bench run`.

    Raises:
        UsageError, DataError: see `models.choice.choose_pair` and `models.pair.load_pair`.
    """
    from bild_bench.models import pair as pairs
    from bild_bench.models.choice import choose_pair
    from bild_bench.tasks import load_task

    found = load_task(task)
    choice = choose_pair(
        found.name, found.kind, preset=preset, aligned=aligned, large=large, small=small, prefix=prefix
    )
    return pairs.load_pair(
        choice, roles, device=device, dtype=dtype, session=session, library_keys=library_roles, announce=announce
    )


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
        seed: of the draw.
        settings: of the method, such as alpha_fb and alpha_rb.

    Raises:
        UsageError: an empty text, no such mode, a setting that it does not have, or sampling where it cannot draw.
        RunError: a model's scores are not finite.
    """
    from bild_bench.models.opening import check_method, open_sessions
    from bild_bench.models.pieces import pieces_of
    from bild_bench.plan import check_sampling, make_point
    from bild_bench.tasks import load_task

    if not text.strip():
        raise UsageError("TEXT", text, "is empty", "give a text to decode")
    point, limits_of = make_point(mode, settings), load_task(task)
    if sampling is not None:
        check_sampling([point])
    limits, source = pair.limits(limits_of.target_limit), pair.tokenise(text, limits_of.source_limit)
    check_method(pair, point.method, point.settings)
    encoded = {role: pair.encode(role, source) for role in point.method.uses}
    sessions = open_sessions(pair, point.method, point.settings, source, encoded, limits)
    decoded = point.method.decode(sessions, point.settings, limits, _picker(sampling, seed))
    trace = decoded.trace()
    pieces = tuple(Piece(text, step) for text, step in zip(pieces_of(pair, trace), trace, strict=True))
    return Generated(
        pair.text(decoded.tokens), decoded.tokens, decoded.counters, pieces, decoded.hit_limit, source.truncated
    )


def run(
    task: str, mode: str = "bild", *, baseline: bool = True, settings: dict[str, Any] | None = None, **request: Any
) -> Experiment:
    """Run an experiment as `bild-bench run` does and read it back.

    Args:
        task: its name.
        mode: the method.
        baseline: decode by vanilla too.
        settings: of the method.
        request: fields of `setup.Request`, such as limit, preset, device, out.
    """
    from bild_bench import results
    from bild_bench.experiment import run_experiment
    from bild_bench.plan import make_point, with_baseline
    from bild_bench.setup import Request

    points = [make_point(mode, {} if settings is None else settings)]
    return results.read(run_experiment(Request(task=task, **request), with_baseline(points) if baseline else points))


def _picker(sampling: Sampling | None, seed: int) -> Picker:
    if sampling is None:
        return Greedy()
    from bild_bench.decoding.sampling import Sampler

    return Sampler(sampling, seed)
