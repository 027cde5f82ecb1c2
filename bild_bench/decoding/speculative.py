"""Speculative decoding by rejection sampling (Leviathan et al. 2023, arXiv 2211.17192; Chen et al. 2023, 2302.01318).

The small model S drafts a window of gamma tokens, the large model L scores them in one pass, and a rule that leaves
L's distribution unchanged says how many are kept (`picking.Picker.judge`). Greedy output is vanilla's, token for token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bild_bench.decoding.picking import Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.decoding.session import Session, Sessions
from bild_bench.decoding.transcript import Handover, Transcript
from bild_bench.errors import UsageError


@dataclass(frozen=True)
class SpeculativeSettings:
    """The window.

    Args:
        gamma: drafts before L is called, 1 or more.
        adaptive: widen the window by 2 after all drafts were kept, narrow it by 1 (to 1 at least) otherwise.

    Raises:
        UsageError: a window below 1.
    """

    gamma: int = 5
    adaptive: bool = False

    def __post_init__(self) -> None:
        if self.gamma < 1:
            raise UsageError("--gamma", self.gamma, "must be 1 or more", "try 5")

    def label(self) -> str:
        """What distinguishes a point of this method, for tables and plots."""
        return f"gamma={self.gamma}" + (" adaptive" if self.adaptive else "")


def speculative(sessions: Sessions, settings: SpeculativeSettings, limits: Limits, picker: Picker) -> Decoded:
    """Decode one text by draft and verification."""
    small, large, text = sessions.need_small(), sessions.need_large(), Transcript(limits)
    gamma = settings.gamma
    while not text.ended:
        proposals = _draft(small, text, gamma, picker)
        all_kept = _verify(small, large, text, proposals, picker)
        if settings.adaptive:
            gamma = gamma + 2 if all_kept else max(1, gamma - 1)
    return text.finish()


def _draft(small: Session, text: Transcript, gamma: int, picker: Picker) -> list[Any]:
    """S drafts gamma tokens, fewer where the text ends; returns what the acceptance rule needs to know of each."""
    proposals: list[Any] = []
    while len(proposals) < gamma and not text.ended:
        row = small.extend(text.unseen(small.length)).last()
        text.small_calls += 1
        token, proposal = picker.propose(row)
        text.draft(token)
        proposals.append(proposal)
    return proposals


def _verify(small: Session, large: Session, text: Transcript, proposals: list[Any], picker: Picker) -> bool:
    """One pass of L over the window; True if every draft was kept.

    A window that ends the text wants no token after it, so its last draft need not be fed.
    """
    drafts, unseen = text.untested, text.unseen(large.length)
    ends = text.ended
    rows = large.extend(unseen[:-1] if ends else unseen)
    text.hand_over(Handover.TAIL if ends else Handover.CAP)
    text.judge([-logprob for logprob in rows.logprob(drafts)])
    verdict = picker.judge(drafts, proposals, rows)
    rejected = len(drafts) - verdict.kept
    if rejected:
        length = text.roll_back(rejected)
        small.truncate(length)
        large.truncate(length)
    if verdict.token is not None:
        text.commit(verdict.token)
    return not rejected
