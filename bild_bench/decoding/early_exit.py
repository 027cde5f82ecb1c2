"""BiLD by early exit: one model, whose first layers are the small model and the whole of which is the large one.

The loop is BiLD's own. Its two sessions share one cache (`models.layered`): after a low-confidence hand-over the large
pass runs only the layers above the exit, on the states that the small one left there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.picking import Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.decoding.session import Sessions
from bild_bench.errors import UsageError

# What a checkpoint's config.json may say, under "bild_bench_objective", that makes its lower layers worth reading.
_TRAINED = ("early-exit", "calm")
UNTRAINED = "the checkpoint does not say that it was trained for early exit: expect noise"


def untrained_exit(method: str, objective: object) -> bool:
    """Does the method leave the decoder early, in a checkpoint whose training objective does not provide for it?

    Args:
        method: its name.
        objective: what the checkpoint says; None where it says nothing.
    """
    return method in ("calm", "bild-early-exit") and objective not in _TRAINED


@dataclass(frozen=True)
class EarlyExitSettings(BildSettings):
    """BiLD's settings, and where the small model ends.

    Args:
        exit_layer: the number of decoder layers that form the small model (k in the paper, which uses 1).

    Raises:
        UsageError: a value outside its range.
    """

    exit_layer: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exit_layer < 1:
            raise UsageError("--exit-layer", self.exit_layer, "must be 1 or more", "the paper uses 1")

    def label(self) -> str:
        """What distinguishes a point of this method, for tables and plots."""
        return f"k={self.exit_layer} {super().label()}"


def bild_early_exit(sessions: Sessions, settings: EarlyExitSettings, limits: Limits, picker: Picker) -> Decoded:
    """Decode one text with BiLD inside one model."""
    assert sessions.depth is not None
    decoded = bild(sessions, settings, limits, picker)
    exit_layers = [0] * sessions.depth
    for step in decoded.entries:
        if step.kept:
            exit_layers[(settings.exit_layer if step.author == "S" else sessions.depth) - 1] += 1
    return replace(decoded, exit_layers=tuple(exit_layers))
