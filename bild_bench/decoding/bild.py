"""Big Little Decoder (Kim et al., NeurIPS 2023, arXiv 2302.07863, Algorithm 1).

The small model S drafts tokens. When it is unsure it hands over to the large model L (fallback): L scores all drafts
since its last call, removes them from the first one it finds too unlikely (rollback), and adds one token of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from bild_bench.decoding.picking import Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.decoding.session import Session, Sessions
from bild_bench.decoding.transcript import Handover, Transcript, nll_of
from bild_bench.errors import UsageError


@dataclass(frozen=True)
class BildSettings:
    """Thresholds and variants of BiLD.

    Args:
        alpha_fb: fall back when max p_S <= alpha_fb, in [0, 1]. 1 is vanilla; 0 without a cap is the small model.
        alpha_rb: roll back when -ln p_L(draft) > alpha_rb, in nats, in [0, inf]. inf never rolls back.
        max_draft: call L after this many drafts in a row all the same; None for no cap (the paper). Released code: 10.
        first: which model generates the first token: "small" (the paper) or "large" (the released code).
        verify_tail: let L test the last drafts before a text ends; off in the paper.

    Raises:
        UsageError: a value outside its range.
    """

    alpha_fb: float = 0.5
    alpha_rb: float = 2.0
    max_draft: int | None = None
    first: Literal["small", "large"] = "small"
    verify_tail: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.alpha_fb <= 1:
            raise UsageError("--alpha-fb", self.alpha_fb, "must be a number from 0 to 1", "try 0.5")
        if not self.alpha_rb >= 0:
            raise UsageError("--alpha-rb", self.alpha_rb, "must be a number from 0 to inf", "try 2, or --no-rollback")
        if self.max_draft is not None and self.max_draft < 1:
            raise UsageError("--max-draft", self.max_draft, "must be 1 or more", "leave it out for no cap")
        if self.first not in ("small", "large"):
            raise UsageError("--first", self.first, "must be small or large", "leave it out for the paper's small")

    def label(self) -> str:
        """What distinguishes a point of this method, for tables and plots."""
        rollback = "never" if math.isinf(self.alpha_rb) else f"{self.alpha_rb:g}"
        parts = [f"fb={self.alpha_fb:g}", f"rb={rollback}"]
        if self.max_draft is not None:
            parts.append(f"cap={self.max_draft}")
        if self.first == "large":
            parts.append("first=large")
        if self.verify_tail:
            parts.append("tail")
        return " ".join(parts)


def bild(sessions: Sessions, settings: BildSettings, limits: Limits, picker: Picker) -> Decoded:
    """Decode one text with BiLD.

    Drawn tokens are tested like chosen ones: both tests look at p before warping (our choice; the sources are silent).
    """
    small, large, text = sessions.need_small(), sessions.need_large(), Transcript(limits)
    if settings.first == "large":
        _take_over(Handover.START, small, large, text, settings.alpha_rb, picker)
    while not text.ended:
        reason = _draft_until_unsure(small, text, settings, picker)
        if reason is Handover.TAIL and not settings.verify_tail:
            break
        _take_over(reason, small, large, text, settings.alpha_rb, picker)
    return text.finish()


def _draft_until_unsure(small: Session, text: Transcript, settings: BildSettings, picker: Picker) -> Handover:
    """S appends its tokens while it is confident; returns why it stopped."""
    while not text.ended:
        if settings.max_draft is not None and len(text.untested) >= settings.max_draft:
            return Handover.CAP
        row = small.extend(text.unseen(small.length)).last()
        text.small_calls += 1
        confidence = row.max_prob()[0]
        if not confidence > settings.alpha_fb:
            return Handover.FALLBACK
        text.draft(picker.pick(row), confidence)
    return Handover.TAIL


def _take_over(
    reason: Handover, small: Session, large: Session, text: Transcript, alpha_rb: float, picker: Picker
) -> None:
    """One pass of L: test the drafts; cut at the first violation and replace it, or else append L's next token.

    The rows that found the violation also supply the replacement, so a rollback costs no second pass. A tail check
    appends nothing, so the last draft need not be fed.
    """
    drafts = text.untested
    unseen = text.unseen(large.length)
    rows = large.extend(unseen[:-1] if reason is Handover.TAIL else unseen)
    text.hand_over(reason)
    nlls = [-logprob for logprob in rows.logprob(drafts)]
    text.judge(nlls)
    violation = next((m for m, nll in enumerate(nlls) if nll > alpha_rb), None)
    if violation is not None:
        length = text.roll_back(len(drafts) - violation)
        small.truncate(length)
        large.truncate(length)
    elif reason is Handover.TAIL:
        return
    chosen = len(drafts) if violation is None else violation
    token = picker.pick(rows, chosen)
    best = token == rows.argmax()[chosen]
    text.commit(token, nll_of(rows.max_prob()[chosen]) if best else -rows.logprob([token], chosen)[0])
