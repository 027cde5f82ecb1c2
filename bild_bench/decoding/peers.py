"""Other implementations as methods: transformers' own `generate`, plain and with the small model as assistant.

A yardstick inside the tool: the same weights, texts, encoder outputs and clock. What a peer does not tell is null.
"""

from __future__ import annotations

from dataclasses import dataclass

from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.picking import Picker
from bild_bench.decoding.records import Counters, Decoded, Limits, generated_tokens
from bild_bench.decoding.session import Sessions
from bild_bench.errors import UsageError


@dataclass(frozen=True)
class AssistedSettings:
    """Where the library really reads them: from the assistant's generation_config.

    Args:
        assistant_tokens: drafts per round (the library's default: 20).
        assistant_confidence: stop drafting below this probability, in [0, 1]; 0 never (the library's default: 0.4).

    Raises:
        UsageError: a value outside its range.
    """

    assistant_tokens: int = 20
    assistant_confidence: float = 0.4

    def __post_init__(self) -> None:
        if self.assistant_tokens < 1:
            raise UsageError(
                "--assistant-tokens", self.assistant_tokens, "must be 1 or more", "the library's default is 20"
            )
        if not 0 <= self.assistant_confidence <= 1:
            raise UsageError(
                "--assistant-confidence",
                self.assistant_confidence,
                "must be a number from 0 to 1",
                "the library's default is 0.4",
            )

    def label(self) -> str:
        """What distinguishes a point of this method, for tables and plots."""
        return f"n={self.assistant_tokens} conf={self.assistant_confidence:g}"


def hf_greedy(sessions: Sessions, settings: AloneSettings, limits: Limits, picker: Picker) -> Decoded:
    """The library's greedy search by the large model."""
    return _outcome(sessions.need_peer().generate(limits.max_tokens, None), limits)


def hf_assisted(sessions: Sessions, settings: AssistedSettings, limits: Limits, picker: Picker) -> Decoded:
    """The library's assisted generation: speculative decoding with the small model as assistant."""
    assistant = {
        "num_assistant_tokens": settings.assistant_tokens,
        "assistant_confidence_threshold": settings.assistant_confidence,
        # "heuristic" carries its state from text to text, and "heuristic_transient" changes the count asked for.
        "num_assistant_tokens_schedule": "constant",
    }
    return _outcome(sessions.need_peer().generate(limits.max_tokens, assistant), limits)


def _outcome(ids: list[int], limits: Limits) -> Decoded:
    tokens = generated_tokens(ids, limits)
    ended = bool(tokens) and tokens[-1] in limits.end_ids
    return Decoded(tokens, Counters(generated=len(tokens)), hit_limit=not ended)
