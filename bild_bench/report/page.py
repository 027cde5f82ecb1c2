"""The report as one HTML file that needs nothing beside it and asks nothing of the network.

Everything is inlined. A Content-Security-Policy allows exactly our scripts and our style sheet, by their hashes, and no
connection at all, so that even a text that got into the page as markup could not run or load anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench import __version__
from bild_bench.parquet import writing
from bild_bench.report.page_data import group_data
from bild_bench.whole_files import write_whole

if TYPE_CHECKING:
    from bild_bench.report.collect import Collected

_SCRIPTS = ("elements.js", "tips.js", "plots.js", "points.js", "texts.js", "corrections.js", "record.js", "page.js")

# Mail servers and slides tools take 6 MB; plots, tables and the drawing library are about 1.5 of it.
_BYTES_FOR_TEXTS = 4_000_000
# Each draws its plots and tables: a browser bears no thousand.
_MOST_GROUPS = 40


def write_page(
    collected: Collected, path: Path, *, max_drops: Sequence[float] = (0.0, 1.0), min_speedup: float | None = None
) -> None:
    """Write the whole report as one HTML file, in one step; its folder is made.

    Args:
        collected: what to show.
        path: of the file.
        max_drops, min_speedup: the questions answered on top; see `answers.answers`.

    Raises:
        UsageError: it cannot be written there. RunError: the disk is full.
    """
    content = render_page(page_data(collected, max_drops=max_drops, min_speedup=min_speedup))
    with writing(path, "--html"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Bytes: a line end that the system changed would no longer fit its hash.
        write_whole(path, content.encode())


def page_data(collected: Collected, **questions: Any) -> dict[str, Any]:
    """What the page shows, as strict JSON values.

    Returns:
        version; groups: the first 40, see `page_data.group_data`; more: how many others there are; damaged files.
    """
    shown = collected.groups[:_MOST_GROUPS]
    share = _BYTES_FOR_TEXTS // max(1, len(shown))
    return {
        "version": __version__,
        "groups": [group_data(group, bytes_for_texts=share, **questions) for group in shown],
        "more": len(collected.groups) - len(shown),
        "damaged": list(collected.damaged),
    }


def render_page(data: dict[str, Any]) -> str:
    """The page as HTML.

    Args:
        data: from `page_data`.
    """
    style, library = _asset("page.css"), _library()
    # In a function of their own, so that their names do not meet the library's.
    script = '(() => {\n"use strict";\n' + "\n".join(map(_asset, _SCRIPTS)) + "})();\n"
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(library)} {_hash(script)}",
            f"style-src {_hash(style)}",
            # "Save as PNG" in a plot's menu draws the plot from such an address.
            "img-src data: blob:",
            *(f"{what} 'none'" for what in ("connect-src", "base-uri", "form-action")),
        ]
    )
    # In a script element only "<" can end it or start a comment; JSON reads \u003c as the same character.
    inlined = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    # A half of a surrogate pair cannot be written in UTF-8.
    inlined = re.sub(r"[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", inlined)
    parts = {"policy": policy, "style": style, "library": library, "data": inlined, "script": script}
    # One pass, so that nothing inside a part is taken for a place to fill.
    return re.sub(r"%%(\w+)%%", lambda place: parts[place[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files("bild_bench.report").joinpath("assets", name).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed, bundled."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
