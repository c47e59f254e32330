"""Checks git objects: each by its hash, and that all reachable ones exist."""

import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import NotebookUnfit
from kb.knowledge.notebook.gitopen import OBJECT_BYTES_MAX
from kb.knowledge.notebook.opening import whole

if TYPE_CHECKING:
    from dulwich.object_store import BaseObjectStore
    from dulwich.objects import Commit, ObjectID, Tree

_PIECE: Final = 1 << 16
_HEAD: Final = re.compile(rb"(?:blob|tree|commit|tag) (?P<size>[0-9]{1,19})\0")
_LINK_TO_COMMIT: Final = 0o160000
_KINDS: Final = {0o040000: "tree"}


class GitFault(Struct, frozen=True):
    """An object, or a pack of objects, that is damaged."""

    place: str
    problem: str


class _NamedObject(Struct, frozen=True):
    """An object that another one names, or a ref."""

    id: bytes
    kind: str
    named_by: str


def is_id(text: bytes) -> bool:
    """Whether this is the id of an object, in hexadecimal."""
    return re.fullmatch(rb"[0-9a-f]{40}", text) is not None


def faults_of_objects(git: Path) -> Iterator[GitFault]:
    """Check every loose object: whether it unpacks and matches its name. In bounded memory."""
    for folder in sorted((git / "objects").glob("??")):
        for path in sorted(folder.iterdir()):
            # Other files are unfinished, and git does not see them as objects.
            if is_id((folder.name + path.name).encode()):
                problem = _problem_of(path, folder.name + path.name)
                if problem:
                    yield GitFault(_place(git, path), problem)


def _problem_of(path: Path, name: str) -> str | None:
    import hashlib

    digest = hashlib.sha1(usedforsecurity=False)
    head, size = b"", 0
    try:
        for piece in _unpacked(path):
            digest.update(piece)
            head = head if len(head) > _PIECE else head + piece[:64]
            size += len(piece)
    except (OSError, ValueError, zlib.error) as error:
        return str(error) if isinstance(error, ValueError) else "an object that cannot be read"
    match = _HEAD.match(head)
    if match is None or size - match.end() != int(match["size"]) or digest.hexdigest() != name:
        return "an object that is not what its name says"
    return None


def _unpacked(path: Path) -> Iterator[bytes]:
    """The content of an object, piece by piece. Raises ValueError with the fault."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("an object that is not a regular file")
        decompressor, size, is_empty = zlib.decompressobj(), 0, True
        while data := decompressor.unconsumed_tail or file.read(_PIECE):
            is_empty = False
            piece = decompressor.decompress(data, _PIECE)
            size += len(piece)
            if size > OBJECT_BYTES_MAX:
                raise ValueError("an object that is too large")
            yield piece
            if decompressor.eof:
                return
    raise ValueError("an empty object" if is_empty else "an object that is cut short")


def faults_of_packs(git: Path) -> Iterator[GitFault]:
    """Check every pack and its index: whether both exist, match their checksums, and agree."""
    folder = git / "objects/pack"
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted(names):
        stem = name.removesuffix(".pack").removesuffix(".idx")
        if name.endswith(".pack") and f"{stem}.idx" not in names:
            yield GitFault(
                _place(git, folder / name), "a pack without its index (`git index-pack`)"
            )
        elif name.endswith(".idx") and f"{stem}.pack" not in names:
            yield GitFault(_place(git, folder / name), "an index without its pack")
        elif name.endswith(".pack"):
            try:
                with whole(git):
                    _check_pack(folder / stem)
            except NotebookUnfit:
                yield GitFault(_place(git, folder / name), "a pack that is damaged")


def _check_pack(stem: Path) -> None:
    from dulwich.object_format import DEFAULT_OBJECT_FORMAT
    from dulwich.pack import Pack

    pack = Pack(os.fspath(stem), object_format=DEFAULT_OBJECT_FORMAT)
    try:
        pack.index.check()
        pack.data.check()
        pack.check_length_and_checksum()
    finally:
        pack.close()


def refs_of(git: Path) -> dict[str, bytes]:
    """The value of each ref, by its name; a loose ref comes before a packed one."""
    refs: dict[str, bytes] = {}
    packed = git / "packed-refs"
    for line in packed.read_bytes().splitlines() if packed.is_file() else ():
        target, _, name = line.partition(b" ")
        if name and not line.startswith((b"#", b"^")):
            refs[os.fsdecode(name)] = target
    for path in sorted((git / "refs").rglob("*")):
        if path.is_file() and not path.name.endswith(".lock"):
            with open(path, "rb") as file:
                refs[path.relative_to(git).as_posix()] = file.read(_PIECE).strip()
    return refs


def problems_of_reachable(
    store: "BaseObjectStore", starts: Iterable[tuple[str, bytes]], git: Path
) -> Iterator[GitFault]:
    """The missing or malformed objects among those that some refs lead to.

    Unreadable objects were reported by the checks of objects and packs.
    """
    shallow = git / "shallow"
    ends = set(shallow.read_bytes().split()) if shallow.is_file() else set()
    pending = [
        _NamedObject(bytes.fromhex(target.decode()), "object", name) for name, target in starts
    ]
    seen: set[bytes] = set()
    while pending:
        named = pending.pop()
        if named.id in seen:
            continue
        seen.add(named.id)
        try:
            with whole(git):
                pending += _named_by(store, named, ends)
        except _Missing:
            problem = f"{named.kind} {named.id.hex()[:10]} is missing; {named.named_by} names it"
            yield GitFault(".git/objects", problem)
        except _Misformed as error:
            yield GitFault(".git/objects", str(error))
        except NotebookUnfit:
            continue


class _Missing(Exception):
    """There is no such object."""


class _Misformed(Exception):
    """A malformed object; `str()` says how."""


def _named_by(
    store: "BaseObjectStore", named: _NamedObject, ends: set[bytes]
) -> list[_NamedObject]:
    from dulwich.errors import ObjectFormatException
    from dulwich.objects import Commit, ObjectID, Tag, Tree

    sha = ObjectID(named.id.hex().encode())
    if sha not in store:
        raise _Missing
    if named.kind == "file":
        return []
    obj = store[sha]
    kind = obj.type_name.decode()
    if named.kind not in ("object", kind):
        raise _Misformed(f"{named.named_by} names a {kind} instead of a {named.kind}")
    try:
        obj.check()
    except ObjectFormatException as error:
        raise _Misformed(f"{kind} {sha.decode()[:10]} is not well formed ({error})") from error
    match obj:
        case Commit():
            return list(_of_commit(obj, sha, ends))
        case Tree():
            return list(_of_tree(obj, sha))
        case Tag():
            return [_NamedObject(bytes.fromhex(obj.object[1].decode()), "object", "a tag")]
        case _:
            return []


def _of_commit(commit: "Commit", sha: "ObjectID", ends: set[bytes]) -> Iterator[_NamedObject]:
    name = f"commit {sha.decode()[:10]}"
    yield _NamedObject(bytes.fromhex(commit.tree.decode()), "tree", name)
    if sha not in ends:
        for parent in commit.parents:
            yield _NamedObject(bytes.fromhex(parent.decode()), "commit", name)


def _of_tree(tree: "Tree", sha: "ObjectID") -> Iterator[_NamedObject]:
    for name, mode, inner in tree.iteritems():
        if mode != _LINK_TO_COMMIT:
            kind = _KINDS.get(mode, "file")
            named_by = f"tree {sha.decode()[:10]}, for {os.fsdecode(name)},"
            yield _NamedObject(bytes.fromhex(inner.decode()), kind, named_by)


def _place(git: Path, path: Path) -> str:
    return path.relative_to(git.parent).as_posix()
