"""One fetch, in a child process that ends in time, whatever the remote does.

`fetch_commit.py` runs it as a module: a request on standard input, an outcome on standard output.
It asks for the ref, then for its newest commit alone, and writes the files of that into a folder.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.intake.git.child import TimeOver, plain, serve, within
from kb.intake.git.remote import Remote
from kb.intake.git.repository_address import TOKEN_NAME

if TYPE_CHECKING:
    from dulwich.object_store import BaseObjectStore
    from dulwich.objects import ObjectID
    from dulwich.refs import Ref
    from dulwich.repo import BaseRepo

FILES: Final = "files"
"""The folder, in that of a request, that the files are written to."""
LISTING: Final = "listing.json"
"""The file, beside it, that lists them as a CommitListing."""
USER_NAME: Final = "KB_GIT_USER"
_ENTRIES_MAX: Final = 1_000_000
_PATH_BYTES_MAX: Final = 4_000
_NAME_BYTES_MAX: Final = 255
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
# Messages of ssh or a server that only a person can resolve.
_LASTING: Final = re.compile(
    r"permission denied|host key verification|does not appear to be|not found|access denied"
    r"|not authori[sz]ed|unauthori[sz]ed|not our ref|no such",
    re.IGNORECASE,
)


class CommitRequest(Struct, frozen=True, kw_only=True):
    """Which commit to fetch, to where, and what bounds it."""

    remote: Remote
    ref: str
    known: str
    """The object that the ref named last time; nothing is fetched if it still does."""
    folder: str
    """An empty folder."""
    addresses: tuple[str, ...] = ()
    """The checked addresses of an https host."""
    token_host: str = ""
    file_bytes_max: int
    bytes_max: int
    """Of the pack, and of the files together."""
    seconds_max: int


class FetchedTree(Struct, frozen=True, kw_only=True, tag="fetched"):
    """The files are in the folder."""

    tip: str
    """The object that the ref names."""


class Unmoved(Struct, frozen=True, kw_only=True, tag="unmoved"):
    """The ref names what it named last time."""


class FetchRefused(Struct, frozen=True, kw_only=True, tag="refused"):
    """It cannot be fetched; another attempt alone changes nothing."""

    detail: str


class FetchFailed(Struct, frozen=True, kw_only=True, tag="failed"):
    """It could not be reached, or failed on the way; another attempt may succeed."""

    detail: str


Outcome = FetchedTree | Unmoved | FetchRefused | FetchFailed


class CommitListing(Struct, frozen=True, kw_only=True):
    """What a commit holds: its files by the ids of their content, and what is left out."""

    blobs: dict[str, str]
    """By path, as URIs quote it."""
    left: dict[str, str]
    """By path: why it is left out."""


class _NotFetched(Exception):
    """The remote has not what is asked for, or more than may be."""


def attempt(request: CommitRequest) -> Outcome:
    """Fetch once; ends within `seconds_max`, by a signal to this process, which must be alone."""
    from dulwich.errors import GitProtocolError, NotGitRepository
    from urllib3.exceptions import HTTPError

    from kb.intake.git.transport import RemoteUnusable

    try:
        with within(request.seconds_max):
            return _attempt(request)
    except TimeOver:
        return FetchFailed(detail=f"it took longer than {request.seconds_max} s")
    except MemoryError:
        return FetchRefused(detail="it needs more memory than kb gives it")
    except (_NotFetched, RemoteUnusable) as error:
        return FetchRefused(detail=plain(str(error), TOKEN_NAME))
    except NotGitRepository:
        return FetchRefused(detail="there is no git repository")
    except (GitProtocolError, HTTPError, OSError, ValueError, KeyError, AssertionError) as error:
        detail = plain(str(error), TOKEN_NAME) or type(error).__name__
        return (
            FetchRefused(detail=detail) if _LASTING.search(detail) else FetchFailed(detail=detail)
        )


def _attempt(request: CommitRequest) -> Outcome:
    from dulwich.repo import Repo

    if request.remote.kind == "local":
        with closing(Repo(request.remote.path)) as repository:
            tip = _tip(dict(repository.get_refs()), request.ref)
            return _written(request, repository, tip)
    scratch = Path(request.folder) / "git"
    scratch.mkdir()
    with closing(Repo.init_bare(os.fspath(scratch))) as repository:
        return _written(request, repository, _fetched(request, repository))


def _written(request: CommitRequest, repository: "BaseRepo", tip: "ObjectID") -> Outcome:
    name = tip.decode("ascii")
    if name == request.known:
        return Unmoved()
    _Writer(request, repository.object_store).write(tip)
    return FetchedTree(tip=name)


def _fetched(request: CommitRequest, repository: "BaseRepo") -> "ObjectID":
    """Fetch the newest commit of the ref without those before it; what the ref names."""
    from dulwich.object_store import DiskObjectStore
    from dulwich.objects import ObjectID

    from kb.intake.git.transport import RemoteNames, client_for

    names = RemoteNames(
        user=USER_NAME,
        token=TOKEN_NAME,
        token_host="fetch.git_token_host",  # noqa: S106  the name of a setting
        if_moved="add that address",
    )
    client, path = client_for(
        request.remote, Path(request.folder), names, request.token_host, request.addresses
    )
    store = repository.object_store
    assert isinstance(store, DiskObjectStore)
    tips: list[ObjectID] = []

    def wanted(refs: "Mapping[Ref, ObjectID]", depth: int | None = None) -> "list[ObjectID]":  # noqa: ARG001
        tip = _tip(refs, request.ref)
        tips.append(tip)
        return [] if tip.decode("ascii") == request.known else [tip]

    file, commit, abort = store.add_pack()
    size = 0

    def take(data: bytes) -> int:
        nonlocal size
        size += len(data)
        if size > request.bytes_max:
            raise _NotFetched(f"it is over {request.bytes_max:,} bytes (crawl.bytes_max)")
        return file.write(data)

    try:
        with closing(client):
            # Of thousands of refs only these are listed.
            client.fetch_pack(
                path, wanted, _NothingHere(), take, depth=1, ref_prefix=_names_of(request.ref)
            )
    except BaseException:
        abort()
        raise
    commit()
    return tips[0]


class _NothingHere:
    """What is here already, for the remote to leave out: no commit."""

    def __next__(self) -> "ObjectID | None":
        return None

    def ack(self, sha: "ObjectID", /) -> None:
        """Only what is offered is acknowledged."""

    def nak(self) -> None:
        """Nothing was offered."""


def _names_of(ref: str) -> list[bytes]:
    if not ref:
        return [b"HEAD"]
    name = os.fsencode(ref)
    return [name, b"refs/tags/" + name, b"refs/heads/" + name]


def _tip(refs: "Mapping[Ref, ObjectID]", ref: str) -> "ObjectID":
    """What a ref names. Raises _NotFetched where there is no such ref."""
    from dulwich.objects import ObjectID
    from dulwich.refs import Ref

    found = next((refs[Ref(name)] for name in _names_of(ref) if Ref(name) in refs), None)
    if found is not None:
        return found
    if _COMMIT.fullmatch(ref):
        return ObjectID(ref.encode())
    if not ref:
        raise _NotFetched("it has no branch that it names as its own; name one by @BRANCH")
    raise _NotFetched(f"it has no branch, tag or commit {ref}; of a commit the whole id is needed")


class _Writer:
    """Writes the files of one commit into a folder that nobody else writes to."""

    def __init__(self, request: CommitRequest, objects: "BaseObjectStore") -> None:
        self._request = request
        self._objects = objects
        self._root = Path(request.folder) / FILES
        self._blobs: dict[str, str] = {}
        self._left: dict[str, str] = {}
        self._bytes = 0

    def write(self, tip: "ObjectID") -> None:
        """Write the files, then their list. Raises _NotFetched, or KeyError for what is missing."""
        from dulwich.objects import Commit, Tag

        found = self._objects[tip]
        while isinstance(found, Tag):
            found = self._objects[found.object[1]]
        if not isinstance(found, Commit):
            raise _NotFetched("what is named is no commit")
        # So that the rules of its .gitignore hold for what is read of it.
        (self._root / ".git").mkdir(parents=True)
        for path, mode, blob in self._entries(found.tree):
            reason = self._take(path, mode, blob)
            if reason:
                self._left[_quoted(path)] = reason
        listing = CommitListing(blobs=self._blobs, left=self._left)
        (Path(self._request.folder) / LISTING).write_bytes(msgspec.json.encode(listing))

    def _entries(self, tree: "ObjectID") -> "Iterator[tuple[bytes, int, ObjectID]]":
        """Every entry that is no folder, with its path."""
        from dulwich.objects import Tree

        count = 0
        waiting = [(b"", tree)]
        while waiting:
            start, ident = waiting.pop()
            folder = self._objects[ident]
            if not isinstance(folder, Tree):
                raise _NotFetched("a folder in it is no folder")
            for entry in folder.iteritems():
                count += 1
                if count > _ENTRIES_MAX:
                    raise _NotFetched(f"it has more than {_ENTRIES_MAX:,} files and folders")
                path = start + entry.path
                if not _is_fit(entry.path) or len(path) > _PATH_BYTES_MAX:
                    self._left[_quoted(path)] = "its name is none that a file may have"
                elif entry.mode & 0o170000 == 0o040000:
                    waiting.append((path + b"/", entry.sha))
                else:
                    yield path, entry.mode, entry.sha

    def _take(self, path: bytes, mode: int, ident: "ObjectID") -> str:
        """Write one file; why it is left out, or "" if it is not."""
        if mode & 0o170000 == 0o120000:
            return "a symbolic link; links are not followed"
        if mode & 0o170000 == 0o160000:
            return "a submodule; add it by an address of its own"
        data = self._objects[ident].as_raw_string()
        limit = self._request.file_bytes_max
        if len(data) > limit:
            return f"over {limit:,} bytes (ingest.file_bytes_max)"
        self._bytes += len(data)
        if self._bytes > self._request.bytes_max:
            raise _NotFetched(
                f"its files are over {self._request.bytes_max:,} bytes (crawl.bytes_max)"
            )
        target = os.path.join(os.fsencode(self._root), path)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "xb") as file:
                file.write(data)
        except (FileExistsError, NotADirectoryError):
            return "another file has its name"
        self._blobs[_quoted(path)] = ident.decode("ascii")
        return ""


def _is_fit(name: bytes) -> bool:
    """Whether a name in a tree is one that a plain file may have here."""
    if not name or b"/" in name or b"\0" in name or len(name) > _NAME_BYTES_MAX:
        return False
    return name not in (b".", b"..") and name.lower() != b".git"


def _quoted(path: bytes) -> str:
    from urllib.parse import quote

    return quote(path)


def main() -> int:
    """Answer one request; returns the exit status."""
    return serve(CommitRequest, attempt)


if __name__ == "__main__":
    sys.exit(main())
