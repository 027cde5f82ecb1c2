"""What the study decodes: texts, models and points of each trial.

A trial's points decode together, text by text: its candidates on validation texts, where thresholds are chosen, and
what was chosen on test texts, beside points that are shown whatever validation says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bild_bench
from bild_bench.decoding.picking import Sampling
from bild_bench.grid import expand
from bild_bench.plan import Point, make_point, with_smalls

FALLBACK, ROLLBACK = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95), (1.0, 2.0, 3.0, 5.0)
WINDOWS = (2, 3, 4, 5, 6, 8)
STRIDES = tuple(range(3, 11))
REPLACE_BELOW = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
EXIT_FALLBACK = (0.3, 0.5, 0.7, 0.9)
CALM_THRESHOLDS = {
    "softmax": (0.2, 0.4, 0.6, 0.8, 0.9, 0.95),
    "state": (0.8, 0.9, 0.95, 0.98, 0.99, 0.999),
    "classifier": (0.3, 0.5, 0.7, 0.8, 0.9, 0.95),
}
NUCLEUS, DRAWS = 0.8, 3

EMBEDDED = Path(bild_bench.__file__).parent / "embedded"


@dataclass(frozen=True)
class Texts:
    """A test set, and the validation set that thresholds are chosen on; both below DATA.

    Args:
        paper_task: the paper's task that its figures are shown beside.
    """

    validation: str
    test: str
    metric: str
    prefix: str
    paper_task: str


CAPTIONS = Texts("multi30k/val.jsonl", "multi30k/test_2016_flickr.jsonl", "bleu", "", "iwslt17")
SYNOPSES = Texts("debian_synopsis/val.jsonl", "debian_synopsis/test.jsonl", "rougeL", "summarize: ", "xsum")


@dataclass(frozen=True)
class Trial:
    """Points that decode together.

    Args:
        name: of its folder and its rows.
        texts: what is decoded.
        large, smalls: folders below MODELS, or of the package's own pair.
        candidates: chosen from on validation texts; none if the trial follows another.
        fixed: decoded on the test texts in any case.
        follows: trial -> the rules of it whose points are decoded here too.
        session: as `bild-bench run --session`; what several methods are compared on must be the same for all.
        validation_limit, test_limit: texts at most, a seeded sample.
        draws: of each text, by nucleus sampling; 0 for greedy search.
    """

    name: str
    texts: Texts
    large: str
    smalls: tuple[str, ...] = ()
    candidates: tuple[Point, ...] = ()
    fixed: tuple[Point, ...] = ()
    follows: Mapping[str, tuple[str, ...]] | None = None
    session: str = "auto"
    validation_limit: int | None = 300
    test_limit: int | None = None
    draws: int = 0

    @property
    def sampling(self) -> Sampling | None:
        """How tokens are drawn; None for greedy search."""
        return Sampling(top_p=NUCLEUS) if self.draws else None


def trials() -> tuple[Trial, ...]:
    """All of them, in an order in which none comes before the one that it follows."""
    return (
        _pair("captions", CAPTIONS, "large", ("small", "aligned")),
        _pair("synopses", SYNOPSES, str(EMBEDDED / "large"), (str(EMBEDDED / "small"), str(EMBEDDED / "aligned"))),
        _early_exit(),
        _calm(),
        Trial(
            name="nucleus",
            texts=CAPTIONS,
            large="large",
            smalls=("small", "aligned"),
            follows={"captions": ("no loss", "within 1 point")},
            draws=DRAWS,
        ),
        Trial(
            name="peers",
            texts=CAPTIONS,
            large="large",
            smalls=("small", "aligned"),
            fixed=(make_point("hf-greedy", {}), *with_smalls(_assisted(), ("small", "aligned"))),
            follows={"captions": ("no loss", "within 1 point", "speculative")},
            test_limit=200,
        ),
    )


def located(model: str, models: Path) -> str:
    """The folder of a model: the package's own pair lies elsewhere than what was trained."""
    return model if Path(model).parent == EMBEDDED else str(models / model)


def _pair(name: str, texts: Texts, large: str, smalls: tuple[str, str]) -> Trial:
    """BiLD and speculative decoding with both small models; the ablations on the aligned one."""
    names = tuple(Path(small).name for small in smalls)
    grid = expand(["bild"], {"alpha_fb": FALLBACK, "alpha_rb": ROLLBACK})
    windows = expand(["speculative"], {"gamma": WINDOWS})
    never_back = expand(["bild"], {"alpha_fb": FALLBACK, "alpha_rb": (float("inf"),)})
    strides = expand(["bild"], {"alpha_fb": (0.0,), "alpha_rb": (2.0,), "max_draft": STRIDES})
    oracle = expand(["oracle"], {"replace_below": REPLACE_BELOW})
    aligned = with_smalls([*grid, *never_back, *strides], names[1:])
    # The same thresholds with the small model as it was: what alignment changes.
    as_it_was = with_smalls([point for point in grid if point.settings.alpha_rb == 2] + strides, names[:1])
    both = with_smalls([make_point("small", {}), *oracle], names)
    return Trial(
        name=name,
        texts=texts,
        large=large,
        smalls=smalls,
        candidates=tuple(with_smalls([*grid, *windows], names)),
        fixed=(*both, *aligned, *as_it_was),
        # What is chosen on few texts loses more on others.
        validation_limit=600,
    )


def _early_exit() -> Trial:
    grid = expand(["bild-early-exit"], {"alpha_fb": EXIT_FALLBACK, "alpha_rb": ROLLBACK, "exit_layer": (1,)})
    # CALM leaves layers one by one, which only this session can: so the large model alone runs on it too.
    return Trial(
        name="early-exit",
        texts=CAPTIONS,
        large="early-exit",
        candidates=tuple(grid),
        fixed=tuple(point for point in grid if point.settings.alpha_rb == 2),
        session="fast",
        validation_limit=150,
        test_limit=300,
    )


def _calm() -> Trial:
    points: list[Point] = []
    for measure, thresholds in CALM_THRESHOLDS.items():
        points += expand(["calm"], {"threshold": thresholds, "measure": (measure,)})
    return Trial(
        name="calm",
        texts=CAPTIONS,
        large="calm",
        candidates=tuple(points),
        fixed=tuple(points),
        session="fast",
        validation_limit=150,
        test_limit=300,
    )


def _assisted() -> Sequence[Point]:
    """With the library's own settings, and with windows as fixed as speculative decoding's."""
    library = make_point("hf-assisted", {})
    return [library, make_point("hf-assisted", {"assistant_tokens": 5, "assistant_confidence": 0.0})]
