"""The texts of the page's drill-down: source, references, and every point's output, with the model behind each token.

A trace of a text by thirty points is a thousand tokens, and a page must open in a moment: piece texts are kept once in
a table, and where the traces would still be too many, an even spread of the texts is shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bild_bench.report.corrections import pieces_of

if TYPE_CHECKING:
    import pandas as pd

_MOST_TEXTS = 60


def texts_of(rows: Mapping[str, pd.DataFrame], text_ids: Sequence[str], *, most_bytes: int) -> dict[str, Any]:
    """Texts to look at one by one.

    Args:
        rows: each point's label and its rows; of several draws the first is shown.
        text_ids: in the data set's order.
        most_bytes: of JSON that comes out, at most; a single text is kept whatever its size.

    Returns:
        total: how many texts there are. pieces: piece texts, by number. shown: a list of {id, number (from 1),
        source, references, outputs}. An output is {label, text, error, generated, seconds, rollbacks, trace}; a trace
        is None where pieces are not stored, else {pieces: numbers, kinds: a letter per token (S small, L large, x cut),
        probs: max p_S in thousandths or None, nlls: -ln p_L or None}.
    """
    by_text = {label: _first_draw(frame) for label, frame in rows.items()}
    count = min(len(text_ids), _MOST_TEXTS)
    while True:
        chosen = [index * len(text_ids) // count for index in range(count)]
        texts = _texts(by_text, [(index + 1, text_ids[index]) for index in chosen])
        size = len(json.dumps(texts, ensure_ascii=False).encode())
        if size <= most_bytes or count <= 1:
            return {"total": len(text_ids), **texts}
        count = max(1, min(count - 1, count * most_bytes // size))


def _first_draw(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    first = frame.sort_values("draw", kind="stable").drop_duplicates("text_id")
    return {str(row["text_id"]): {str(name): value for name, value in row.items()} for row in first.to_dict("records")}


def _texts(by_text: Mapping[str, Mapping[str, Any]], numbered: Sequence[tuple[int, str]]) -> dict[str, Any]:
    numbers: dict[str, int] = {}
    shown = []
    for number, text_id in numbered:
        found = {label: texts[text_id] for label, texts in by_text.items() if text_id in texts}
        if not found:
            continue
        any_row = next(iter(found.values()))
        shown.append(
            {
                "id": text_id,
                "number": number,
                "source": any_row["source"],
                "references": list(any_row["references"]),
                "outputs": [_output(label, row, numbers) for label, row in found.items()],
            }
        )
    return {"pieces": list(numbers), "shown": shown}


def _output(label: str, row: Mapping[str, Any], numbers: dict[str, int]) -> dict[str, Any]:
    if row["status"] != "ok":
        return {"label": label, "error": str(row["error"])}
    pieces = pieces_of(row)
    seconds = row["decode_seconds"]
    return {
        "label": label,
        # The pieces make up the text: only without them it is stored a second time.
        "text": row["output_text"] if pieces is None else None,
        "generated": _whole(row["generated"]),
        "rollbacks": _whole(row["rollbacks"]),
        "seconds": None if math.isnan(seconds) else round(float(seconds), 5),
        "trace": None if pieces is None else _trace(row["trace"], pieces, numbers),
    }


def _trace(steps: Sequence[Mapping[str, Any]], pieces: Sequence[str], numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "pieces": [numbers.setdefault(piece, len(numbers)) for piece in pieces],
        "kinds": "".join(step["author"] if step["kept"] else "x" for step in steps),
        "probs": [_rounded(step["small_max_prob"], 1000, 0) for step in steps],
        "nlls": [_rounded(step["large_nll"], 1, 2) for step in steps],
    }


def _rounded(value: float | None, scale: int, digits: int) -> float | int | None:
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        return value
    rounded = round(value * scale, digits)
    # 0.0 and 7.0 would take two bytes more than 0 and 7, half a million times.
    return int(rounded) if rounded == int(rounded) else rounded


def _whole(value: Any) -> int | None:
    import pandas as pd

    # A counter that a peer does not tell is None or pandas.NA, by the way the rows were put together.
    return None if value is None or pd.isna(value) else int(value)
