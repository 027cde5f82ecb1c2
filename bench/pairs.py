"""Trained pairs: BiLD against transformers' assisted generation and against our vanilla, at a bounded loss of BLEU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import baselines
from bench.figures import SEED, Figure, figure, missing, on_condition
from bench.interleave import Contestant, Text, Turn, interleave, seconds_of
from bench.shapes import Announce, Subject
from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.bild import BildSettings
from bild_bench.decoding.peers import AssistedSettings
from bild_bench.measure.quality import score

VANILLA = "vanilla"
# What a user may lose, in points of BLEU, and what the paper's best aligned pair gains over vanilla at that loss.
OVER_VANILLA = {0.0: 1.85, 1.0: 2.12}
OVER_ASSISTED = 2.0
# The library's own settings, and short windows without its confidence test: the faster is the yardstick.
ASSISTED = (AssistedSettings(20, 0.4), AssistedSettings(5, 0.0))
FALLBACK, ROLLBACK = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95), (1.0, 2.0, 3.0)
GRID = tuple(BildSettings(alpha_fb, alpha_rb) for alpha_fb in FALLBACK for alpha_rb in ROLLBACK)


@dataclass(frozen=True)
class Swept:
    """One point of the sweep: seconds over all its texts, and their BLEU."""

    settings: BildSettings
    seconds: float
    bleu: float


def pair_figures(subject: Subject, sweep: int, given: Mapping[float, BildSettings], announce: Announce) -> list[Figure]:
    """BiLD's rows for one pair.

    Args:
        subject: with a small model, and texts that have references.
        sweep: the thresholds are looked for on so many of the first texts; the figures rest on the others.
        given: loss -> the settings to take there, without a sweep.
        announce: called with one line before something slow.
    """
    looked_at, measured = subject.texts[:sweep], subject.texts[sweep:]
    chosen: dict[float, BildSettings | None] = {loss: given.get(loss) for loss in OVER_VANILLA}
    if None in chosen.values():
        announce(f"{subject.shape}: looking for thresholds on {len(looked_at)} texts")
        chosen |= {loss: found for loss, found in _swept(subject, looked_at).items() if loss not in given}
    contestants: dict[str, Contestant] = {VANILLA: baselines.our_method(subject, VANILLA, AloneSettings())}
    for assisted in ASSISTED:
        contestants[assisted.label()] = baselines.library_assisted(subject, assisted)
    for settings in chosen.values():
        if settings is not None:
            contestants[settings.label()] = baselines.our_method(subject, "bild", settings)
    announce(f"{subject.shape}: BiLD, vanilla and assisted generation on {len(measured)} texts")
    turns = interleave(measured, contestants, seed=SEED, warm=True)
    bleus = {name: _bleu(subject, measured, found) for name, found in turns.items()}
    return pair_rows(subject.shape, chosen, turns, bleus, _alignment(subject))


def pair_rows(
    shape: str,
    chosen: Mapping[float, BildSettings | None],
    turns: Mapping[str, Sequence[Turn]],
    bleus: Mapping[str, float],
    small: str,
) -> list[Figure]:
    """The rows of `pair_figures`, from everyone's turns and BLEU.

    Args:
        shape: the pair's name.
        chosen: loss in points of BLEU -> BiLD's settings there; None where the sweep found none.
        turns, bleus: by contestant: `VANILLA`, and the labels of all settings.
        small: what the notes say of the small model.
    """
    assisted = min((settings.label() for settings in ASSISTED), key=lambda name: sum(seconds_of(turns[name])))
    rows = [_row(shape, "transformers assisted generation", assisted, chosen[0.0], 0.0, turns, bleus, small)]
    for loss, settings in chosen.items():
        against = "our vanilla, no loss" if loss == 0 else f"our vanilla, a loss of {loss:g} at most"
        rows.append(_row(shape, against, VANILLA, settings, loss, turns, bleus, small))
    return rows


def _row(
    shape: str,
    against: str,
    base: str,
    settings: BildSettings | None,
    loss: float,
    turns: Mapping[str, Sequence[Turn]],
    bleus: Mapping[str, float],
    small: str,
) -> Figure:
    contestant, target = f"over {against}", OVER_VANILLA[loss] if base == VANILLA else OVER_ASSISTED
    if settings is None:
        reason = f"no thresholds of the sweep lose {loss:g} points of BLEU at most; {small}"
        return missing("BiLD", shape, contestant, reason, target=target)
    own = settings.label()
    told = "" if base == VANILLA else f" over {base}"
    note = f"{own}{told}; BLEU {bleus[own]:.2f} against {bleus[base]:.2f}; {small}"
    times = seconds_of(turns[base]), seconds_of(turns[own])
    found = figure("BiLD", shape, contestant, *times, target=target, note=note)
    return on_condition(found, bleus[own] >= bleus[base] - loss)


def pick(points: Sequence[Swept], least: float) -> BildSettings | None:
    """The fastest point whose BLEU is `least` or more; None where there is none."""
    able = [point for point in points if point.bleu >= least]
    return min(able, key=lambda point: point.seconds).settings if able else None


def _swept(subject: Subject, texts: Sequence[Text]) -> dict[float, BildSettings | None]:
    contestants = {settings.label(): baselines.our_method(subject, "bild", settings) for settings in GRID}
    contestants[VANILLA] = baselines.our_method(subject, VANILLA, AloneSettings())
    turns = interleave(texts, contestants, seed=SEED, pause=0.0)
    points = [
        Swept(settings, sum(seconds_of(turns[label])), _bleu(subject, texts, turns[label]))
        for settings, label in ((settings, settings.label()) for settings in GRID)
    ]
    base = _bleu(subject, texts, turns[VANILLA])
    return {loss: pick(points, base - loss) for loss in OVER_VANILLA}


def _bleu(subject: Subject, texts: Sequence[Text], turns: Sequence[Turn]) -> float:
    written = [subject.pair.text(turn.tokens) for turn in turns]
    return score("bleu", written, [text.references for text in texts]).value


def _alignment(subject: Subject) -> str:
    objective = subject.pair.models["small"].description["objective"]
    return "small model's training objective not recorded" if objective is None else f"small model: {objective}"
