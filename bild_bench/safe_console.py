"""The console of every command: what it prints cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bild_bench.printable import visible


class SafeConsole(Console):
    """A console that shows control characters of names and messages and never sends them to the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of something printable; only rich's own control codes are left as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
