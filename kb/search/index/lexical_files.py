"""The lexical index at rest: one folder to a generation, and the manifest that names it."""

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import StoreBusy
from kb.model.doc import Audience
from kb.model.failpoints import failpoint
from kb.search.index.files import (
    CacheDamaged,
    FileMark,
    fsync_folder,
    intact,
    mark_file,
    read_manifest,
    seal,
    sha256_file,
    untouched,
    write_beside,
)
from kb.search.index.follow import Place
from kb.search.index.lock import file_lock

SCHEMA_VERSION: Final = 3
META: Final = "meta.json"
_DELETIONS: Final = ".del"
_MANIFEST: Final = "manifest.json"
_LOCK: Final = "lock"
_PREFIX: Final = "g-"
_DRAFT: Final = "new-"
_FOOTER_MAGIC: Final = 1337


class LexicalManifest(Struct, frozen=True, kw_only=True):
    """What a generation holds, as of its last recorded commit."""

    schema: int
    analysis: int
    audience: Audience
    generation: str
    watermark: int
    tail: str
    opstamp: int
    """tantivy's count of operations at that commit; it never goes back."""
    rows: int
    dead_rows: int
    """Rows that are deleted and that tantivy has not merged away."""
    files: tuple[FileMark, ...]
    # One that was written before this was counted may have lost rows.
    removed: int = 1
    """Rows that went since the generation was made, merged away or not: BM25 still knows of them.

    tantivy sums the lengths of passages anew when it merges, and rounds each.
    """

    def is_worn(self, share: float) -> bool:
        """Whether over this share of what its statistics know of is gone."""
        return self.worn_rows > share * (self.rows + self.worn_rows)

    @property
    def worn_rows(self) -> int:
        """Rows that are gone and that its statistics know of."""
        return max(self.removed, self.dead_rows)


class Meta(Struct, frozen=True, kw_only=True):
    """The parts of tantivy's meta.json that we rely on."""

    opstamp: int
    segments: frozenset[str]
    deletions: frozenset[str]
    """Names of the files that list what is deleted of a segment."""
    rows: int
    dead_rows: int


def folder_of(folder: Path, audience: Audience) -> Path:
    """Where the index of an audience lies. An owner may have any name, a folder may not."""
    kind, _, owner = audience.partition(":")
    if kind == audience:
        return folder / kind
    name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return folder / f"{kind}-{name}"


def manifest_path(folder: Path) -> Path:
    """Where the manifest of the index in `folder` lies."""
    return folder / _MANIFEST


def lock_path(folder: Path) -> Path:
    """The lock of the index in `folder`; it is never removed."""
    return folder / _LOCK


def generation_path(folder: Path, generation: str) -> Path:
    """Where the files of a generation lie."""
    return folder / (_PREFIX + generation)


def draft_path(folder: Path, generation: str) -> Path:
    """Where a generation is written that nothing names yet; only its writer knows of it."""
    return folder / (_DRAFT + generation)


def drop_drafts(folder: Path) -> None:
    """Remove what writers left that were killed. Its caller holds the lock on the folder itself."""
    for name in os.listdir(folder):
        if name.startswith(_DRAFT):
            shutil.rmtree(folder / name, ignore_errors=True)


def hashes_of(generation: Path) -> dict[str, str]:
    """The SHA-256 of each file of a generation, by name, but for the one that commits replace."""
    names = _files_of(generation, read_meta(generation))
    return {name: sha256_file(generation / name) for name in names}


def load_manifest(folder: Path, audience: Audience) -> tuple[str, LexicalManifest] | None:
    """The manifest and its hash; None where there is none that this program made for `audience`."""
    found = read_manifest(manifest_path(folder), LexicalManifest)
    if found is None or (found[1].schema, found[1].audience) != (SCHEMA_VERSION, audience):
        return None
    return found


def _hex(segment: dict[str, str]) -> str:
    return segment["segment_id"].replace("-", "")


def read_meta(generation: Path) -> Meta:
    """What tantivy says it holds. Raises CacheDamaged where it cannot be read."""
    try:
        raw = json.loads((generation / META).read_bytes())
        segments = raw["segments"]
        listed = {_hex(s): s["deletes"] for s in segments if s["deletes"]}
        dead = sum(deletes["num_deleted_docs"] for deletes in listed.values())
        return Meta(
            opstamp=int(raw["opstamp"]),
            segments=frozenset(_hex(s) for s in segments),
            deletions=frozenset(f"{seg}.{d['opstamp']}{_DELETIONS}" for seg, d in listed.items()),
            rows=sum(s["max_doc"] for s in segments) - dead,
            dead_rows=dead,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CacheDamaged(f"{META}: {error}") from error


def findings(folder: Path, manifest: LexicalManifest, *, by_hash: bool) -> list[str]:
    """What is not as written, a line each.

    A commit that its manifest did not live to see is no damage: its files carry tantivy's own
    checksums, and the log from the manifest's watermark on is applied once more.
    """
    path = generation_path(folder, manifest.generation)
    marks = {mark.name: mark for mark in manifest.files}
    if untouched(path, marks[META]) and not by_hash:
        return [name for name, mark in marks.items() if not intact(path, mark)]
    try:
        meta = read_meta(path)
    except CacheDamaged as error:
        return [str(error)]
    if meta.opstamp < manifest.opstamp:
        return [f"{META} is older than its manifest"]
    if meta.opstamp == manifest.opstamp and not intact(path, marks[META], by_hash=True):
        # The same commit must say the same.
        return [f"{META} is not what was written"]
    names = _files_of(path, meta)
    named = {name.partition(".")[0] for name in names}
    problems = [f"segment {gone} is missing" for gone in sorted(meta.segments - named)]
    for name in sorted(names | _expected(marks, meta)):
        mark = marks.get(name)
        sound = intact(path, mark, by_hash=by_hash) if mark else _checks_itself(path / name)
        if not sound:
            problems.append(name)
    return problems


def _expected(marks: dict[str, FileMark], meta: Meta) -> set[str]:
    # A newer commit replaces a segment's list of deletions, and nothing else of it.
    return {
        name
        for name in marks
        if name.partition(".")[0] in meta.segments and not name.endswith(_DELETIONS)
    }


def _files_of(path: Path, meta: Meta) -> set[str]:
    """The files of a commit.

    A list of deletions that it does not name is litter: of a commit before it, or torn, of one
    that was killed.
    """
    try:
        found = {name for name in os.listdir(path) if name.partition(".")[0] in meta.segments}
    except OSError:
        return set()
    return {n for n in found if not n.endswith(_DELETIONS) or n in meta.deletions}


def _checks_itself(path: Path) -> bool:
    """Whether a file matches the CRC-32 in the footer that tantivy ends each of its files with.

    The footer is JSON with a key `crc`, then its length and a magic number, 4 bytes each, little
    endian (tantivy, directory/footer.rs).
    """
    try:
        content = path.read_bytes()
        magic = int.from_bytes(content[-4:], "little")
        length = int.from_bytes(content[-8:-4], "little")
        footer = json.loads(content[-8 - length : -8])
        return magic == _FOOTER_MAGIC and footer["crc"] == zlib.crc32(content[: -8 - length])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_manifest(
    folder: Path,
    generation: str,
    place: Place,
    *,
    audience: Audience,
    analysis: int,
    removed: int,
    hashes: Mapping[str, str] | None = None,
) -> None:
    """Record what a generation holds now; hashes of files known before, or given, are kept."""
    path = generation_path(folder, generation)
    meta = read_meta(path)
    before = load_manifest(folder, audience)
    known = dict(hashes or {})
    if before and before[1].generation == generation:
        # Segment files never change once written; a hash made at the time is worth more.
        known |= {mark.name: mark.sha256 for mark in before[1].files if mark.name != META}
    marks = [mark_file(path / name, known.get(name)) for name in sorted(_files_of(path, meta))]
    record = LexicalManifest(
        schema=SCHEMA_VERSION,
        analysis=analysis,
        audience=audience,
        generation=generation,
        watermark=place.watermark,
        tail=place.tail,
        opstamp=meta.opstamp,
        rows=meta.rows,
        dead_rows=meta.dead_rows,
        files=(*marks, mark_file(path / META)),
        removed=removed,
    )
    beside = write_beside(manifest_path(folder), seal(record))
    os.replace(beside, manifest_path(folder))
    fsync_folder(folder)
    failpoint("lexical.after_manifest")


def drop_other_generations(folder: Path, keep: str) -> None:
    """Remove generations that the manifest does not name; readers keep what they have mapped."""
    for name in os.listdir(folder):
        if name.startswith(_PREFIX) and name != _PREFIX + keep:
            shutil.rmtree(folder / name, ignore_errors=True)
    with suppress(OSError):
        manifest_path(folder).with_name(manifest_path(folder).name + ".new").unlink()


def remove_index(folder: Path, is_unused: Callable[[], bool] = lambda: True) -> None:
    """Remove the index that lies in `folder`, but for its lock, if it is still unused then.

    One that is being written, or cannot be removed, stays.
    """
    with suppress(OSError, StoreBusy), file_lock(lock_path(folder), 0.0):
        if is_unused():
            manifest_path(folder).unlink(missing_ok=True)
            drop_other_generations(folder, "")
            with file_lock(folder, 0.0):
                drop_drafts(folder)
