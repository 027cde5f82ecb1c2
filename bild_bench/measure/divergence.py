"""Do methods that claim the large model's own tokens deliver them? If not: where, and was it a tie?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bild_bench.decoding.records import Limits
from bild_bench.measure.timing import Divergence, Outcome
from bild_bench.models.pair import Pair, Source


def with_divergence(pair: Pair, source: Source, outcomes: Sequence[Outcome], limits: Limits) -> list[Outcome]:
    """Compare every lossless method's output with vanilla's; outside all clocks, for greedy search.

    Args:
        pair: for the large model's scores where outputs differ.
        source: the text.
        outcomes: of one text, vanilla's among them (otherwise nothing is compared).
        limits: for the start token.
    """
    vanilla = next((o.decoded for o in outcomes if o.point.method.name == "vanilla" and o.decoded is not None), None)
    if vanilla is None:
        return list(outcomes)
    compared = []
    for outcome in outcomes:
        claims = outcome.point.method.lossless(outcome.point.settings)
        if claims and outcome.decoded is not None and outcome.decoded.tokens != vanilla.tokens:
            divergence = _first_difference(pair, source, vanilla.tokens, outcome.decoded.tokens, limits)
            outcome = replace(outcome, divergence=divergence)
        compared.append(outcome)
    return compared


def _first_difference(
    pair: Pair, source: Source, expected: Sequence[int], found: Sequence[int], limits: Limits
) -> Divergence:
    shared = zip(expected, found, strict=False)
    position = next((n for n, (one, other) in enumerate(shared) if one != other), min(len(expected), len(found)))
    if position in (len(expected), len(found)):
        # One output is the other's beginning: no two tokens to compare.
        return Divergence(position, float("inf"))
    session = pair.session("large", pair.encode("large", source), limits)
    row = session.extend([limits.start_id, *expected[:position]]).last()
    if found[position] >= row.probs().shape[-1]:
        # A peer's model may choose an id beyond the tokenizer, which our rows do not hold.
        return Divergence(position, float("inf"))
    better, worse = row.logprob([expected[position]])[0], row.logprob([found[position]])[0]
    return Divergence(position, better - worse)
