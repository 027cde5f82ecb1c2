"""A whole download, from a stand-in of the hub on this machine: what is fetched, remembered and refused."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bild_bench import hub
from bild_bench.errors import DataError

COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
FILES = {"data/test-00000-of-00001.parquet": b"rows" * 400, "data/train-00000-of-00001.parquet": b"more" * 9000}


class StandIn(BaseHTTPRequestHandler):
    """The three requests that a download needs: a revision's files, its tree, and each file."""

    requests: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.requests.append(self.path)
        path, _, _ = self.path.partition("?")
        if path.startswith("/api/datasets/someone/texts/revision/gone"):
            self.reply(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        elif path.startswith("/api/datasets/someone/texts/revision/"):
            siblings = [{"rfilename": name, "size": len(content)} for name, content in FILES.items()]
            self.reply(200, json.dumps({"id": "someone/texts", "sha": COMMIT, "siblings": siblings}).encode())
        elif path.startswith(f"/api/datasets/someone/texts/tree/{COMMIT}"):
            tree = [{"type": "file", "path": name, "size": len(FILES[name]), "oid": _etag(name)} for name in FILES]
            self.reply(200, json.dumps(tree).encode())
        elif path.startswith("/datasets/someone/texts/resolve/"):
            name = path.partition(f"{COMMIT}/")[2]
            self.reply(200, FILES[name], {"ETag": f'"{_etag(name)}"', "X-Repo-Commit": COMMIT})
        else:
            self.reply(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **({} if headers is None else headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is its own."""


def _etag(name: str) -> str:
    return hashlib.sha1(FILES[name]).hexdigest()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    from huggingface_hub import constants

    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    StandIn.requests.clear()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.usefixtures("stand_in")
def test_only_the_wanted_files_are_fetched_and_then_remembered(tmp_path: Path) -> None:
    lines: list[str] = []
    # The second one matches nothing, and the repository's listing says that it need not.
    wanted = ["data/test-*.parquet", "*.csv"]
    first = hub.fetch("someone/texts", "main", "dataset", wanted, announce=lines.append, cache_dir=tmp_path)
    asked = len(StandIn.requests)
    again = hub.fetch("someone/texts", "main", "dataset", wanted, announce=lines.append, cache_dir=tmp_path)
    assert first == again
    assert len(StandIn.requests) == asked > 0
    assert lines == ["downloading 1.6 kB from huggingface.co (dataset someone/texts)"]
    assert first.commit == COMMIT
    found = {file.relative_to(first.path).as_posix(): file.read_bytes() for file in first.path.rglob("*.parquet")}
    assert found == {"data/test-00000-of-00001.parquet": FILES["data/test-00000-of-00001.parquet"]}


@pytest.mark.usefixtures("stand_in")
def test_another_split_is_fetched_into_the_same_snapshot(tmp_path: Path) -> None:
    paths = []
    for split in ("test", "train"):
        pattern = [f"data/{split}-*.parquet"]
        found = hub.fetch("someone/texts", "main", "dataset", pattern, announce=lambda _: None, cache_dir=tmp_path)
        paths.append(found.path)
    assert paths[0] == paths[1]
    assert len(list(paths[0].rglob("*.parquet"))) == 2


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("repo", "revision", "pattern", "problem"),
    [
        ("someone/texts", "gone", "data/test-*.parquet", "the repository has no such revision"),
        ("someone/else", "main", "data/test-*.parquet", "the hub has no such repository, or it is private"),
        ("someone/texts", "main", "data/dev-*.parquet", "the repository has no file data/dev-"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, repo: str, revision: str, pattern: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        hub.fetch(repo, revision, "dataset", [pattern], announce=lambda _: None, cache_dir=tmp_path)
