"""Trained pairs: BiLD against transformers' assisted generation and against our vanilla, at a bounded loss of BLEU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import baselines
from bench.figures import SEED, Figure, figure, missing, on_condition
from bench.interleave import Text, Turn, interleave, seconds_of
from bench.shapes import Announce, Subject
from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.bild import BildSettings
from bild_bench.decoding.peers import AssistedSettings
from bild_bench.measure.quality import score
from bild_bench.measure.quality_intervals import paired_quality_difference

VANILLA = "vanilla"
# What a user may lose, in points of BLEU, and what the paper's best aligned pair gains over vanilla at that loss.
OVER_VANILLA = {0.0: 1.85, 1.0: 2.12}
OVER_ASSISTED = 2.0
# The library's own settings, and short windows without its confidence test: the faster is the yardstick.
ASSISTED = (AssistedSettings(20, 0.4), AssistedSettings(5, 0.0))
# Assisted generation takes ten times as long as all others together, and on each text the same whatever it gains.
ASSISTED_TEXTS = 200
FALLBACK, ROLLBACK = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95), (1.0, 2.0, 3.0)
GRID = tuple(BildSettings(alpha_fb, alpha_rb) for alpha_fb in FALLBACK for alpha_rb in ROLLBACK)


@dataclass(frozen=True)
class Swept:
    """One point of the sweep: seconds over all its texts, and their BLEU."""

    settings: BildSettings
    seconds: float
    bleu: float


@dataclass(frozen=True)
class Race:
    """Who took how long for the same texts, and the quality of their outputs.

    Args:
        turns: of every contestant, by name.
        bleus: likewise.
        gains: BLEU over `base`'s with its paired interval, of all but that.
        base: whom they are held against.
    """

    turns: Mapping[str, Sequence[Turn]]
    bleus: Mapping[str, float]
    gains: Mapping[str, tuple[float, float, float]]
    base: str


def pair_figures(subject: Subject, given: Mapping[float, BildSettings], announce: Announce) -> list[Figure]:
    """BiLD's rows for one pair.

    Args:
        subject: with a small model, and texts that have references.
        given: loss -> the settings to take there, without looking for them on the validation texts.
        announce: called with one line before something slow.
    """
    chosen: dict[float, BildSettings | None] = {loss: given.get(loss) for loss in OVER_VANILLA}
    if None in chosen.values():
        announce(f"{subject.shape}: looking for thresholds on {len(subject.validation)} texts")
        chosen |= {loss: found for loss, found in _swept(subject).items() if loss not in given}
    announce(f"{subject.shape}: BiLD and vanilla on {len(subject.texts)} texts")
    vanilla = baselines.our_method(subject, VANILLA, AloneSettings())
    points = {found.label(): baselines.our_method(subject, "bild", found) for found in chosen.values() if found}
    # Nobody here has threads that go on spinning in another's turn, so nobody need rest.
    turns = interleave(subject.texts, {VANILLA: vanilla, **points}, seed=SEED, warm=True, pause=0.0)
    ours = _race(subject, subject.texts, turns, VANILLA)
    few = subject.texts[:ASSISTED_TEXTS]
    announce(f"{subject.shape}: BiLD and assisted generation on {len(few)} texts")
    assisted = {found.label(): baselines.library_assisted(subject, found) for found in ASSISTED}
    turns = interleave(few, {**assisted, **points}, seed=SEED, warm=True)
    fastest = min(assisted, key=lambda name: sum(seconds_of(turns[name])))
    return pair_rows(subject.shape, chosen, ours, _race(subject, few, turns, fastest), _alignment(subject))


def pair_rows(
    shape: str, chosen: Mapping[float, BildSettings | None], ours: Race, library: Race, small: str
) -> list[Figure]:
    """The rows of `pair_figures`.

    Args:
        shape: the pair's name.
        chosen: loss in points of BLEU -> BiLD's settings there; None where the sweep found none.
        ours: against our vanilla.
        library: against the faster assisted generation.
        small: what the notes say of the small model.
    """
    rows = [_row(shape, "transformers assisted generation", chosen[0.0], (0.0, OVER_ASSISTED), library, small)]
    for loss, settings in chosen.items():
        against = "our vanilla, no loss" if loss == 0 else f"our vanilla, a loss of {loss:g} at most"
        rows.append(_row(shape, against, settings, (loss, OVER_VANILLA[loss]), ours, small))
    return rows


def _row(
    shape: str, against: str, settings: BildSettings | None, bounds: tuple[float, float], race: Race, small: str
) -> Figure:
    """One row; bounds: the loss of BLEU that is allowed, and the ratio to reach."""
    (loss, target), contestant, base = bounds, f"over {against}", race.base
    if settings is None:
        reason = f"no thresholds of the sweep lose {loss:g} points of BLEU at most; {small}"
        return missing("BiLD", shape, contestant, reason, target=target)
    own = settings.label()
    told = "" if base == VANILLA else f" over {base}"
    gain, low, high = race.gains[own]
    note = f"{own}{told}; BLEU {race.bleus[own]:.2f} against {race.bleus[base]:.2f}"
    note += f" ({gain:+.2f} [{low:+.2f}, {high:+.2f}]); {small}"
    times = seconds_of(race.turns[base]), seconds_of(race.turns[own])
    found = figure("BiLD", shape, contestant, *times, target=target, note=note)
    return on_condition(found, gain >= -loss)


def _race(subject: Subject, texts: Sequence[Text], turns: Mapping[str, Sequence[Turn]], base: str) -> Race:
    references = [text.references for text in texts]
    written = {name: _written(subject, found) for name, found in turns.items()}
    gains = {
        name: paired_quality_difference("bleu", written[base], found, references, seed=SEED)
        for name, found in written.items()
        if name != base
    }
    return Race(turns, {name: _bleu(found, texts) for name, found in written.items()}, gains, base)


def _written(subject: Subject, turns: Sequence[Turn]) -> list[str]:
    return [subject.pair.text(turn.tokens) for turn in turns]


def _bleu(written: Sequence[str], texts: Sequence[Text]) -> float:
    return score("bleu", written, [text.references for text in texts]).value


def pick(points: Sequence[Swept], least: float) -> BildSettings | None:
    """The fastest point whose BLEU is `least` or more; None where there is none."""
    able = [point for point in points if point.bleu >= least]
    return min(able, key=lambda point: point.seconds).settings if able else None


def _swept(subject: Subject) -> dict[float, BildSettings | None]:
    contestants = {settings.label(): baselines.our_method(subject, "bild", settings) for settings in GRID}
    contestants[VANILLA] = baselines.our_method(subject, VANILLA, AloneSettings())
    turns = interleave(subject.validation, contestants, seed=SEED, pause=0.0)
    bleus = {name: _bleu(_written(subject, found), subject.validation) for name, found in turns.items()}
    labels = {settings: settings.label() for settings in GRID}
    points = [Swept(settings, sum(seconds_of(turns[label])), bleus[label]) for settings, label in labels.items()]
    return {loss: pick(points, bleus[VANILLA] - loss) for loss in OVER_VANILLA}


def _alignment(subject: Subject) -> str:
    objective = subject.pair.models["small"].description["objective"]
    return "small model's training objective not recorded" if objective is None else f"small model: {objective}"
