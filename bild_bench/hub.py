"""All that speaks to the Hugging Face hub, for data sets and models: the cache, then a quick look, then a download."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, TypeVar

from bild_bench.errors import DataError
from bild_bench.parts import incomplete_parts

RepoType = Literal["dataset", "model"]
_Result = TypeVar("_Result")

_ANSWER_SECONDS = 3.0
# Name resolution may hang for much longer than any HTTP timeout: this limit is kept by our own clock.
_LIMIT_SECONDS = 4.0
_WAYS_ON = {
    "dataset": "use --data PATH for a local copy, or --preset embedded, which needs no network",
    "model": "use --large PATH --small PATH for local copies, or --preset embedded, which needs no network",
}
_WEIGHTS = (".safetensors", ".bin")
_DISK_PROBLEMS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


@dataclass(frozen=True)
class Fetched:
    """Files of a repository on this machine.

    Args:
        path: the snapshot's folder, laid out like the repository.
        commit: the commit that the folder holds.
    """

    path: Path
    commit: str | None


@dataclass(frozen=True)
class Listing:
    """What a repository holds at one commit: file name -> size in bytes (0 where the hub does not tell)."""

    commit: str
    sizes: dict[str, int]


@dataclass(frozen=True)
class _Wanted:
    repo_id: str
    revision: str | None
    repo_type: RepoType
    patterns: tuple[str, ...]
    cache_dir: Path | None


def fetch(
    repo_id: str,
    revision: str | None,
    repo_type: RepoType,
    patterns: Sequence[str],
    *,
    announce: Callable[[str], None],
    cache_dir: Path | None = None,
) -> Fetched:
    """Files of a hub repository, from the local cache without any network where it has them.

    Args:
        repo_id: "owner/name".
        revision: a branch, tag or commit (None: the default branch). A branch that is cached is not looked up again.
        repo_type: "dataset" or "model".
        patterns: globs of the wanted files, relative to the repository's root; `*` also matches "/". One that matches
            nothing is no error, as long as another one does.
        announce: called with one line before a download, its size included.
        cache_dir: the hub's cache folder (default: the library's, HF_HUB_CACHE).

    Raises:
        DataError: the files are neither in the cache nor to be had; within 5 s when the hub cannot be reached.
    """
    wanted = _Wanted(repo_id, revision, repo_type, tuple(patterns), cache_dir)
    try:
        cached = _from_cache(wanted)
        if cached is not None and _is_complete(wanted, cached):
            return cached
        try:
            listing = _within(_LIMIT_SECONDS, lambda: look_up(repo_id, revision, repo_type))
        except Exception as error:
            if cached is None:
                raise
            announce(f"using what the cache has of {repo_id}: {_cause(error)}")
            return cached
        return _download(wanted, listing, announce)
    except DataError:
        raise
    # The client raises errors of three libraries (HTTP, file system, its own); to the reader they are one.
    except Exception as error:
        raise _failure(wanted, f"not in the cache, and {_cause(error)}") from error


def look_up(repo_id: str, revision: str | None, repo_type: RepoType) -> Listing:
    """The commit and the files of a revision, in one request. Raises what huggingface_hub raises."""
    from huggingface_hub import HfApi

    ask = HfApi().dataset_info if repo_type == "dataset" else HfApi().model_info
    info = ask(repo_id, revision=revision, files_metadata=True, timeout=_ANSWER_SECONDS)
    if info.sha is None:
        raise ValueError("the hub named no commit")
    siblings = [] if info.siblings is None else info.siblings
    return Listing(info.sha, {file.rfilename: 0 if file.size is None else file.size for file in siblings})


def _from_cache(wanted: _Wanted) -> Fetched | None:
    """A cached copy that can be used, complete or not."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        path = _snapshot(wanted, local_files_only=True)
    except LocalEntryNotFoundError:
        return None
    names = _names(path)
    found = _matching(names, wanted.patterns)
    # Other tools often cache a model's small files alone; weights of the other format make it a model all the same.
    no_weights = any(name.endswith(_WEIGHTS) for name in wanted.patterns) and not any(
        name.endswith(_WEIGHTS) for name in names
    )
    return None if not found or no_weights or incomplete_parts(found) is not None else Fetched(path, path.name)


def _is_complete(wanted: _Wanted, cached: Fetched) -> bool:
    from huggingface_hub import get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        # Where the library has the repository's listing, it has refused an incomplete copy already.
        get_cached_repo_tree(
            wanted.repo_id, repo_type=wanted.repo_type, revision=cached.commit, cache_dir=wanted.cache_dir
        )
    except CachedRepoTreeNotFoundError:
        return all(_matching(_names(cached.path), [pattern]) for pattern in wanted.patterns)
    return True


def _download(wanted: _Wanted, listing: Listing, announce: Callable[[str], None]) -> Fetched:
    names = _matching(listing.sizes, wanted.patterns)
    if not names:
        raise _failure(wanted, f"the repository has no file {' or '.join(wanted.patterns)}")
    size = sum(listing.sizes[name] for name in names if not _is_cached(wanted, name, listing.commit))
    announce(f"downloading {_readable(size)} from huggingface.co ({wanted.repo_type} {wanted.repo_id})")
    # By the revision's name and not by its commit: only so does the cache remember what the name stands for.
    path = _snapshot(wanted, local_files_only=False)
    absent = [name for name in names if not (path / name).is_file()]
    if absent:
        raise _failure(wanted, f"the download is not complete ({len(absent)} files are missing, {absent[0]} first)")
    return Fetched(path, path.name)


def _snapshot(wanted: _Wanted, *, local_files_only: bool) -> Path:
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            wanted.repo_id,
            revision=wanted.revision,
            repo_type=wanted.repo_type,
            allow_patterns=list(wanted.patterns),
            cache_dir=wanted.cache_dir,
            local_files_only=local_files_only,
        )
    )


def _is_cached(wanted: _Wanted, name: str, commit: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(
        wanted.repo_id, name, cache_dir=wanted.cache_dir, revision=commit, repo_type=wanted.repo_type
    )
    return isinstance(found, str)


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _names(folder: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]


def _within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """The function's result, or TimeoutError after `seconds`."""
    answer: Future[_Result] = Future()

    def work() -> None:
        try:
            answer.set_result(function())
        except Exception as error:
            answer.set_exception(error)

    # Not an executor: its threads keep the process alive until they end, and name resolution may hang.
    threading.Thread(target=work, daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except TimeoutError as error:
        if answer.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from error


def _cause(error: Exception) -> str:
    from huggingface_hub import errors

    # In this order: a gated repository is also one that was not found, and all three are HTTP errors.
    known: tuple[tuple[type[Exception], str], ...] = (
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE forbids the network"),
        (errors.GatedRepoError, "access is gated: ask for it on the repository's page, then run `hf auth login`"),
        (errors.RepositoryNotFoundError, "the hub has no such repository, or it is private"),
        (errors.RevisionNotFoundError, "the repository has no such revision"),
        (errors.HFValidationError, "not a valid repository name (owner/name)"),
    )
    for kind, cause in known:
        if isinstance(error, kind):
            return cause
    if isinstance(error, errors.HfHubHTTPError):
        return f"the hub answered with HTTP status {error.response.status_code}"
    if isinstance(error, OSError) and error.errno in _DISK_PROBLEMS:
        return f"the hub's cache folder cannot be used ({error})"
    return f"the hub cannot be reached ({type(error).__name__}: {error})"


def _failure(wanted: _Wanted, cause: str) -> DataError:
    field = "data set on the hub" if wanted.repo_type == "dataset" else "model on the hub"
    value = wanted.repo_id if wanted.revision is None else f"{wanted.repo_id}@{wanted.revision}"
    return DataError(field, value, cause, _WAYS_ON[wanted.repo_type])


def _readable(size: int) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
