"""A headless Chromium for tests, spoken to over its own pipe: no driver, no port, no further package.

The protocol is Chrome's DevTools protocol: JSON messages that end with a zero byte, into descriptor 3 of the browser
and out of its descriptor 4.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--no-default-browser-check", "--disable-extensions"),
)
_PATIENCE = 60.0


def find_chromium() -> str | None:
    """The first Chromium or Chrome on the path; None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name)) is not None), None)


class Page:
    """One open page. Use as a context manager: the browser ends with it."""

    def __init__(self, program: str, profile: Path, *, width: int = 1280, height: int = 900) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # High numbers first: 3 and 4 could be among the four.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]

        def connect() -> None:
            for number, end in zip((3, 4), ends, strict=True):
                os.dup2(end, number)

        size = f"--window-size={width},{height}"
        self._browser = subprocess.Popen(
            [program, *_FLAGS, size, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._buffer, self._last, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Page:
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self._session = ""
            self.call("Browser.close")
        for end in (self._write, self._read):
            os.close(end)
        try:
            self._browser.wait(10)
        except subprocess.TimeoutExpired:
            self._browser.kill()
            self._browser.wait()

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """One command and its answer; events that come in between are kept in `events`."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": arguments}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)
        raise AssertionError(f"{method}: the browser said nothing for {_PATIENCE:.0f} s")

    def open(self, path: Path) -> None:
        """Load a file and wait until it is loaded."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, as JSON; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until a JavaScript expression is true."""
        end = time.monotonic() + _PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"still not true: {condition}"
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """A real mouse move and click in the middle of the first element that a CSS selector finds."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect();"
            " return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })()"
        )
        # A frame later what the scrolling has set off is over.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def seen(self, *methods: str) -> list[dict[str, Any]]:
        """The parameters of the events of these kinds so far."""
        self.call("Runtime.getHeapUsage")
        return [event["params"] for event in self.events if event.get("method") in methods]

    def _messages(self) -> Iterator[dict[str, Any]]:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            while b"\0" in self._buffer:
                message, _, self._buffer = self._buffer.partition(b"\0")
                yield json.loads(message)
            if select.select([self._read], [], [], 1.0)[0]:
                received = os.read(self._read, 1 << 20)
                assert received, "the browser has ended"
                self._buffer += received
