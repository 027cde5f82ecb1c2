"""From what a user asks for to everything that an experiment needs in memory: task, texts, models, points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench import results
from bild_bench.checks import check_seed, check_threads, folder
from bild_bench.data import Examples, load_examples
from bild_bench.decoding.picking import Sampling
from bild_bench.decoding.records import Limits
from bild_bench.decoding.typed import typed
from bild_bench.errors import DataError, UsageError
from bild_bench.measure.metrics import tokenized
from bild_bench.measure.scripts import script_warning
from bild_bench.models.choice import PairChoice, choose_pair
from bild_bench.plan import Point, check_sampling, keys_of, library_keys_of
from bild_bench.tasks import Task, load_task

if TYPE_CHECKING:
    from bild_bench.models.pair import Pair

Announce = Callable[[str], None]

# All rows of a text are held until its last one.
_MOST_DRAWS = 10_000
_NUMBERS = ("limit", "threads", "seed", "draws", "warmup")


def silent(line: str) -> None:
    """An `Announce` that says nothing."""


@dataclass(frozen=True)
class Request:
    """What is asked for, apart from the points. Field names are those of the options of `bild-bench run`.

    Args:
        data: "embedded", "hub" or a path; None for "embedded" with the embedded pair and "hub" with the others.
        large, small: folder or hub id. Paths may be given as Path, here as for task and data.
        bleu_tokenize: sacreBLEU's tokenizer of that name instead of 13a; see `measure.metrics.TOKENIZERS`.
        smalls: several small models to compare, instead of `small`; points name them (`Point.small`).
        limit: texts at most, a seeded sample; None for all.
        threads: CPU threads, 1 to 4 for each usable core; None for those with which the models are fastest.
        seed: of all that is drawn, 0 to 2**32 - 1.
        sampling: draw tokens, the baseline's too; None for greedy search.
        draws: how often each text is decoded, with other draws each time.
        warmup: texts decoded first and dropped.
        out: the experiment's directory; None for a new one under `results`. ~ is written out in all three paths.
        results: folder of experiments.
        budget: seconds after which no further text is begun; None for no limit.
        prune: drop points that cannot reach the front any more.
        extend: directory of an earlier experiment whose rows are taken over where they may be.
        command: the command line, for the record.

    Raises:
        UsageError: a number of another type or out of range, or an empty path.
    """

    task: str
    data: str | None = None
    split: str | None = None
    limit: int | None = None
    source_column: str | None = None
    target_column: str | None = None
    metric: str | None = None
    bleu_tokenize: str | None = None
    preset: str | None = None
    aligned: bool | None = None
    large: str | None = None
    small: str | None = None
    smalls: tuple[str, ...] = ()
    prefix: str | None = None
    device: str = "auto"
    dtype: str = "float32"
    threads: int | None = None
    session: str = "auto"
    seed: int = 0
    sampling: Sampling | None = None
    draws: int = 1
    warmup: int = 2
    budget: float | None = None
    prune: bool = False
    extend: Path | None = None
    out: Path | None = None
    results: Path = Path("results")
    command: str = ""

    def __post_init__(self) -> None:
        plain: dict[str, Any] = typed(type(self), {name: getattr(self, name) for name in _NUMBERS})
        given = {name: getattr(self, name) for name in ("out", "results", "extend")}
        plain |= {name: folder(f"--{name}", path) for name, path in given.items() if path is not None}
        named = {name: getattr(self, name) for name in ("task", "data", "large", "small")}
        plain |= {name: str(path) for name, path in named.items() if isinstance(path, Path)}
        for name, value in plain.items():
            # The way to set a field of a frozen dataclass while it is made.
            object.__setattr__(self, name, value)
        check_seed(self.seed)
        check_threads(self.threads)
        if self.warmup < 0:
            raise UsageError("--warmup", self.warmup, "must be 0 or more", "leave it out for 2")
        if self.draws < 1:
            raise UsageError("--draws", self.draws, "must be 1 or more", "leave it out for 1")
        if self.draws > _MOST_DRAWS:
            raise UsageError("--draws", self.draws, f"must be at most {_MOST_DRAWS:,} for each text", "ask for fewer")
        if self.draws > 1 and self.sampling is None:
            raise UsageError("--draws", self.draws, "greedy search gives the same text each time", "add --top-p 0.8")


@dataclass(frozen=True)
class Setup:
    """All that is decoded, and by what.

    threads_timed: milliseconds of a few steps by number of threads, where the number was chosen; see `choose_threads`.
    """

    request: Request
    task: Task
    examples: Examples
    pair: Pair
    points: tuple[Point, ...]
    threads_timed: Mapping[int, float] | None = None

    @property
    def limits(self) -> Limits:
        """Where decoding starts and stops."""
        return self.pair.limits(self.task.target_limit)


def choose(request: Request, points: Sequence[Point]) -> tuple[Task, PairChoice]:
    """The task and the pair that are asked for; all that can be said before anything is read or written.

    Raises:
        UsageError, DataError: see `load_task` and `choose_pair`; UsageError too for a model that no point uses.
    """
    if request.sampling is not None:
        check_sampling(points)
    smalls = ",".join(request.smalls) or None
    for role, model in (("large", request.large), ("small", request.small), ("small", smalls)):
        if model is not None and not any(role in point.method.uses for point in points):
            modes = ",".join(dict.fromkeys(point.method.name for point in points))
            raise UsageError(
                f"--{role}", model, f"does not apply to --mode {modes}", "leave it out, or choose another mode"
            )
    task = load_task(
        request.task, source_column=request.source_column, target_column=request.target_column, metric=request.metric
    )
    if request.bleu_tokenize is not None:
        task = replace(task, metric=tokenized(task.metric, request.bleu_tokenize))
    choice = choose_pair(
        task.name,
        task.kind,
        preset=request.preset,
        aligned=request.aligned,
        large=request.large,
        small=request.small,
        smalls=request.smalls,
        prefix=request.prefix,
    )
    return task, choice


def prepare(
    request: Request, points: Sequence[Point], task: Task, choice: PairChoice, announce: Announce = silent
) -> Setup:
    """Read the texts, then load the models.

    Raises:
        UsageError, DataError: see `load_examples`, `load_pair` and `check_method`.
    """
    data = request.data if request.data is not None else ("embedded" if choice.comes_with_package else "hub")
    examples = load_examples(task, data, request.split, request.limit, request.seed, announce)
    if not any(example.source.strip() for example in examples.examples):
        raise DataError("--data", examples.label, "every source text is empty", "check --source-column")
    unreadable = script_warning(task.metric, (example.references for example in examples.examples))
    if unreadable is not None:
        announce(f"warning: {unreadable}")

    import torch

    from bild_bench.models.opening import check_method
    from bild_bench.models.pair import load_pair
    from bild_bench.remarks import cut_limit

    if request.threads is not None:
        torch.set_num_threads(request.threads)
    pair = load_pair(
        choice,
        keys_of(points),
        device=request.device,
        dtype=request.dtype,
        session=request.session,
        library_keys=library_keys_of(points),
        announce=announce,
    )
    _require_different(pair, request.smalls)
    cut = cut_limit(pair, task.target_limit)
    if cut is not None:
        announce(f"warning: {cut}")
    for point in points:
        check_method(pair.using(point.models), point.method, point.settings)
    setup = Setup(request, task, examples, pair, tuple(points))
    return setup if request.threads is not None else _with_threads(setup)


def _with_threads(setup: Setup) -> Setup:
    """Set the fastest number of threads and keep what was timed, or take those of the experiment that is extended."""
    import torch

    from bild_bench.thread_choice import set_fastest

    if setup.request.extend is not None:
        # With others, none of its rows could be taken over: times count for one number of threads only.
        there = results.read_run(setup.request.extend).environment.get("threads")
        torch.set_num_threads(torch.get_num_threads() if there is None else there)
        return setup
    text = next(example.source for example in setup.examples.examples if example.source.strip())
    return replace(setup, threads_timed=set_fastest(setup.pair, text, setup.limits))


def _require_different(pair: Pair, smalls: Sequence[str]) -> None:
    """Points are told apart by what their models hold, not by where they lie."""
    held = [loaded.checkpoint.fingerprint for key, loaded in pair.models.items() if key.startswith("small:")]
    if len(set(held)) < len(held):
        raise UsageError("--small", ",".join(smalls), "names the same model twice", "leave one out")
