"""Documents and help texts use the field's words: rates "per token", "distribution", tokens that are generated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from bild_bench.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bild_bench/embedded/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# What is counted, and per what: "12 ms a token", "bytes a second", "once a step". "read a text" is none of these.
_COUNTED = (
    r"ms|seconds|milliseconds|minutes|bytes|MB|FLOPs?|layers|tokens|drafts|texts|calls|rows|steps|draws|batches|once"
)
_PER = r"token|text|second|minute|hour|step|call|round|row|point|draw|batch|epoch|group|byte|experiment|element"
UNWANTED = {
    "a rate without per": re.compile(rf"\b(?:{_COUNTED}) an? (?:generated )?(?:{_PER})\b", re.IGNORECASE),
    "law for distribution": re.compile(r"\blaws?\b", re.IGNORECASE),
    "who wrote a token": re.compile(r"\bwho (?:wrote|writes)\b(?! them)", re.IGNORECASE),
    "so many without a comparison": re.compile(r"\bso (?:many|often)\b(?! that)(?! as)", re.IGNORECASE),
    "as told": re.compile(r"\b(?:is|unless) told\b", re.IGNORECASE),
}
# The commands by name; the library's own class is what knows their options.
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def unwanted(text: str) -> list[str]:
    """What stands in a text and should not, with the words around it."""
    prose = " ".join(re.sub(r"```.*?```", " ", text, flags=re.DOTALL).split())
    return [
        f"{name}: …{prose[max(0, match.start() - 30) : match.end() + 30]}…"
        for name, pattern in UNWANTED.items()
        for match in pattern.finditer(prose)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents_use_the_fields_words(page: Path) -> None:
    assert unwanted(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts_use_the_fields_words(name: str) -> None:
    command = COMMANDS[name]
    texts = [command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)]
    assert [found for text in texts for found in unwanted(text)] == []


def test_every_option_has_a_help_text() -> None:
    bare = [
        f"{name} {parameter.opts[0]}"
        for name, command in COMMANDS.items()
        for parameter in command.params
        if not getattr(parameter, "help", None)
    ]
    assert bare == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("early exit takes 3.1 layers a token", 1),
        ("12 ms a text and 4 bytes an element", 2),
        ("exactly the large model's law", 1),
        ("who wrote which token", 1),
        ("stop after so many checkpoints", 1),
        ("so many that it stops", 0),
        ("each call reads a text, and all texts a model has seen", 0),
        ("12 ms per token, drawn from a distribution", 0),
    ],
)
def test_what_is_looked_for_is_found_and_nothing_else(line: str, found: int) -> None:
    assert len(unwanted(line)) == found
