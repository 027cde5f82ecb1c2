"""One model alone, one token per step: `vanilla` is the large model (the baseline), `small` the quality floor."""

from __future__ import annotations

from dataclasses import dataclass

from bild_bench.decoding.picking import Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.decoding.session import Sessions
from bild_bench.decoding.transcript import Transcript


@dataclass(frozen=True)
class AloneSettings:
    """A model alone has nothing to set."""

    def label(self) -> str:
        """What distinguishes a point of this method; empty."""
        return ""


def vanilla(sessions: Sessions, settings: AloneSettings, limits: Limits, picker: Picker) -> Decoded:
    """Decoding by the large model."""
    large, text = sessions.need_large(), Transcript(limits)
    while not text.ended:
        rows = large.extend(text.unseen(large.length))
        text.large_calls += 1
        text.commit(picker.pick(rows))
    return text.finish()


def small(sessions: Sessions, settings: AloneSettings, limits: Limits, picker: Picker) -> Decoded:
    """Decoding by the small model."""
    model, text = sessions.need_small(), Transcript(limits)
    while not text.ended:
        rows = model.extend(text.unseen(model.length))
        text.small_calls += 1
        text.draft(picker.pick(rows))
    return text.finish()
