"""The oracle of the BiLD paper's motivating figure: how much of a text must the large model generate?

Both models run at every step; the small model's token stands unless the large one finds it too unlikely. It is no way
to be fast: it shows the quality that a given share of replaced tokens allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bild_bench.decoding.picking import Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.decoding.session import Sessions
from bild_bench.decoding.transcript import Handover, Transcript
from bild_bench.errors import UsageError


@dataclass(frozen=True)
class OracleSettings:
    """Replace the small model's token wherever p_L of it is below this.

    Args:
        replace_below: a probability in [0, 1]; 0 never replaces, 1 (almost) always.

    Raises:
        UsageError: not a probability.
    """

    replace_below: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.replace_below <= 1:
            raise UsageError("--replace-below", self.replace_below, "must be a number from 0 to 1", "try 0.1")

    def label(self) -> str:
        """What distinguishes a point of this method, for tables and plots."""
        return f"below={self.replace_below:g}"


def oracle(sessions: Sessions, settings: OracleSettings, limits: Limits, picker: Picker) -> Decoded:
    """Decode one text, asking both models for every token."""
    small, large, text = sessions.need_small(), sessions.need_large(), Transcript(limits)
    while not text.ended:
        small_row = small.extend(text.unseen(small.length)).last()
        large_row = large.extend(text.unseen(large.length)).last()
        text.small_calls += 1
        text.hand_over(Handover.CAP)
        token = picker.pick(small_row)
        logprob = large_row.logprob([token])[0]
        if math.exp(logprob) < settings.replace_below:
            token = picker.pick(large_row)
            text.commit(token, -large_row.logprob([token])[0])
        else:
            text.draft(token, small_row.max_prob()[0])
            text.judge([-logprob])
    return text.finish()
