"""What must be known before one decoded text is believed."""

from __future__ import annotations

from bild_bench.decoding.early_exit import UNTRAINED, untrained_exit
from bild_bench.decoding.records import Decoded
from bild_bench.models.pair import Pair, Source
from bild_bench.plan import Point


def cut_limit(pair: Pair, target_limit: int) -> str | None:
    """One line where the models have fewer positions than a task allows tokens; None where they do not."""
    most = pair.limits(target_limit).max_tokens
    if most == target_limit:
        return None
    return f"texts end after {most} tokens: the models have no more positions (the task allows {target_limit})"


def unknown_tokens(pair: Pair, source: Source) -> int:
    """Tokens of the source that the tokenizer does not know; 0 where it has no such token."""
    unknown = pair.tokenizer.unk_token_id
    return 0 if unknown is None else int(source.ids[0].tolist().count(unknown))


def remarks_on(pair: Pair, point: Point, source: Source, decoded: Decoded, target_limit: int) -> tuple[str, ...]:
    """One line each; none where all is well."""
    cut = cut_limit(pair, target_limit)
    unknown = unknown_tokens(pair, source)
    objective = pair.models["large"].description["objective"] if "large" in pair.models else None
    untrained = untrained_exit(point.method.name, objective) and not point.method.lossless(point.settings)
    found = {
        UNTRAINED: untrained,
        "the source was cut at the task's source limit": source.truncated,
        f"{unknown} source token{'' if unknown == 1 else 's'} unknown to the tokenizer": unknown > 0,
        "the text ended at the length limit, without an end token": decoded.hit_limit,
    }
    return (*([] if cut is None else [cut]), *(line for line, holds in found.items() if holds))
