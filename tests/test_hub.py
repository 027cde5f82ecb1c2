"""The hub: the cache first, one quick look, one line for every failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bild_bench import hub
from bild_bench.errors import DataError
from bild_bench.hub import Listing, fetch

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = "someone/some-model"
WEIGHTS = ["config.json", "*.safetensors"]


def never(_: str) -> None:
    raise AssertionError("nothing may be announced here")


def fill_cache(cache: Path, files: list[str], *, kind: str = "models", ref: str = "main") -> Path:
    """A cache as the hub's library lays it out: blobs, and a snapshot of links to them."""
    repo = cache / f"{kind}--someone--some-model"
    snapshot = repo / "snapshots" / COMMIT
    (repo / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
    (repo / "refs" / ref).write_text(COMMIT)
    (repo / "blobs").mkdir(exist_ok=True)
    for number, name in enumerate(files):
        blob = repo / "blobs" / f"{number:040x}"
        blob.write_text(name)
        (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / name).symlink_to(blob)
    return snapshot


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: object) -> Listing:
        raise AssertionError("the cache had it: the hub must not be asked")

    monkeypatch.setattr(hub, "look_up", look_up)


def answer_with(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Listing]) -> None:
    monkeypatch.setattr(hub, "look_up", lambda *_: answer())


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def look_up(*_: object) -> Listing:
        raise error

    monkeypatch.setattr(hub, "look_up", look_up)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_a_complete_cache_needs_no_network(tmp_path: Path, revision: str | None) -> None:
    snapshot = fill_cache(tmp_path, ["config.json", "model.safetensors"])
    found = fetch(MODEL, revision, "model", WEIGHTS, announce=never, cache_dir=tmp_path)
    assert (found.path, found.commit) == (snapshot, COMMIT)


@pytest.mark.usefixtures("no_network")
def test_a_cached_data_set_on_a_branch_with_slashes(tmp_path: Path) -> None:
    snapshot = fill_cache(tmp_path, ["de-en/test/0000.parquet"], kind="datasets", ref="refs/convert/parquet")
    pattern = ["de-en/test/*.parquet"]
    found = fetch(MODEL, "refs/convert/parquet", "dataset", pattern, announce=never, cache_dir=tmp_path)
    assert found.path == snapshot


@pytest.mark.usefixtures("no_network")
def test_the_cache_named_by_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = fill_cache(tmp_path, ["config.json", "model.safetensors"])
    assert fetch(MODEL, "main", "model", WEIGHTS, announce=never).path == snapshot


@pytest.mark.parametrize(
    "files",
    [
        [],
        ["README.md"],
        ["config.json"],
        ["config.json", "model-00001-of-00002.safetensors"],
    ],
)
def test_a_cache_without_weights_asks_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str]
) -> None:
    if files:
        fill_cache(tmp_path, files)
    fail_with(monkeypatch, ConnectionError("asked"))
    with pytest.raises(DataError, match=r"not in the cache, and the hub cannot be reached \(ConnectionError: asked\)"):
        fetch(MODEL, "main", "model", WEIGHTS, announce=never, cache_dir=tmp_path)


def test_a_cache_that_may_lack_files_is_used_when_the_hub_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_cache(tmp_path, ["config.json", "pytorch_model.bin"])
    fail_with(monkeypatch, ConnectionError("asked"))
    lines: list[str] = []
    found = fetch(MODEL, "main", "model", WEIGHTS, announce=lines.append, cache_dir=tmp_path)
    assert found.commit == COMMIT
    assert lines == [f"using what the cache has of {MODEL}: the hub cannot be reached (ConnectionError: asked)"]


def test_a_cached_link_to_a_lost_blob_asks_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = fill_cache(tmp_path, ["config.json", "model.safetensors"])
    (snapshot / "model.safetensors").resolve().unlink()
    fail_with(monkeypatch, ConnectionError("asked"))
    with pytest.raises(DataError, match="asked"):
        fetch(MODEL, "main", "model", WEIGHTS, announce=never, cache_dir=tmp_path)


def test_a_download_is_announced_with_what_is_still_to_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_cache(tmp_path, ["config.json"])
    sizes = {"config.json": 500, "model.safetensors": 2_900_000_000, "README.md": 10**12}
    answer_with(monkeypatch, lambda: Listing(COMMIT, sizes))
    real = hub._snapshot

    def download(wanted: Any, *, local_files_only: bool) -> Path:
        if not local_files_only:
            return fill_cache(tmp_path / "new", ["config.json", "model.safetensors"])
        return real(wanted, local_files_only=True)

    monkeypatch.setattr(hub, "_snapshot", download)
    lines: list[str] = []
    found = fetch(MODEL, "main", "model", WEIGHTS, announce=lines.append, cache_dir=tmp_path)
    assert lines == ["downloading 2.9 GB from huggingface.co (model someone/some-model)"]
    assert found.commit == COMMIT


def test_an_incomplete_download_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, lambda: Listing(COMMIT, {"config.json": 5, "model.safetensors": 5}))
    half = fill_cache(tmp_path, ["config.json"])
    monkeypatch.setattr(hub, "_snapshot", lambda *_, **__: half)
    with pytest.raises(DataError, match=r"download is not complete \(1 files are missing, model\.safetensors first\)"):
        fetch(MODEL, "main", "model", WEIGHTS, announce=lambda _: None, cache_dir=tmp_path)


def test_a_repository_without_the_file_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, lambda: Listing(COMMIT, {"config.json": 5, "pytorch_model.bin": 5}))
    with pytest.raises(DataError, match=r"the repository has no file \*\.onnx or \*\.safetensors"):
        fetch(MODEL, "main", "model", ["*.onnx", "*.safetensors"], announce=never, cache_dir=tmp_path)


def http_error(kind: str, status: int) -> Exception:
    from huggingface_hub import errors

    class Response:
        status_code = status
        headers: dict[str, str] = {}  # noqa: RUF012
        request = None

    return getattr(errors, kind)("the server's own words", response=Response())  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kind", "status", "cause"),
    [
        ("GatedRepoError", 403, "access is gated"),
        ("RepositoryNotFoundError", 404, "the hub has no such repository, or it is private"),
        ("RevisionNotFoundError", 404, "the repository has no such revision"),
        ("HfHubHTTPError", 503, "the hub answered with HTTP status 503"),
    ],
)
def test_what_the_hub_answers_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, status: int, cause: str
) -> None:
    fail_with(monkeypatch, http_error(kind, status))
    with pytest.raises(DataError, match=cause):
        fetch(MODEL, "main", "model", WEIGHTS, announce=never, cache_dir=tmp_path)


@pytest.mark.parametrize(("repo_type", "path"), [("dataset", "--data PATH"), ("model", "--large PATH --small PATH")])
def test_every_failure_names_both_ways_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repo_type: hub.RepoType, path: str
) -> None:
    fail_with(monkeypatch, OSError(28, "No space left on device"))
    with pytest.raises(DataError, match=r"cache folder cannot be used.*No space left") as caught:
        fetch(MODEL, "v1", repo_type, ["x"], announce=never, cache_dir=tmp_path)
    assert path in str(caught.value)
    assert "--preset embedded" in str(caught.value)
    assert f"{MODEL}@v1" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_that_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a valid repository name"):
        fetch("a/b/c", None, "model", WEIGHTS, announce=never, cache_dir=tmp_path)


def test_offline_mode_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="HF_HUB_OFFLINE forbids the network"):
        fetch(MODEL, "main", "model", WEIGHTS, announce=never, cache_dir=tmp_path)


def test_a_hub_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def hang() -> Listing:
        released.wait(30)
        return Listing(COMMIT, {})

    answer_with(monkeypatch, hang)
    monkeypatch.setattr(hub, "_LIMIT_SECONDS", 0.05)
    with pytest.raises(DataError, match=r"no answer within 0\.05 s"):
        fetch(MODEL, "main", "model", WEIGHTS, announce=never, cache_dir=tmp_path)
    released.set()


def test_a_hub_out_of_reach_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    # 192.0.2.0/24 is kept for documentation (RFC 5737): nobody answers there, with or without a network.
    monkeypatch.setattr(constants, "ENDPOINT", "http://192.0.2.1")
    start = time.monotonic()
    with pytest.raises(DataError, match="cannot be reached"):
        fetch(MODEL, "main", "model", WEIGHTS, announce=never, cache_dir=tmp_path)
    assert time.monotonic() - start < 8
