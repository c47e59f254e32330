"""The files of a lexical index: a folder per generation, and the manifest that names one."""

import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import StoreBusy
from kb.model.doc import Audience
from kb.model.failpoints import failpoint
from kb.search.index.files import (
    CacheDamaged,
    FileMark,
    content_matches,
    mark_file,
    sha256_file,
    stats_match,
)
from kb.search.index.log_follower import LogPosition
from kb.store.content.durable import fsync_folder, write_temporary
from kb.store.content.lock import file_lock
from kb.store.content.sealed_json import read_sealed_json, sealed_json

SCHEMA_VERSION: Final = 5
META: Final = "meta.json"
_DELETIONS: Final = ".del"
_MANIFEST: Final = "manifest.json"
_LOCK: Final = "lock"
_PREFIX: Final = "g-"
_DRAFT: Final = "new-"
_FOOTER_MAGIC: Final = 1337
# docs/adr/0037: up to here the best ten hardly differ, and each dead row costs fifty rewritten
# rows, a fifth of the cost of embedding its text.
DEAD_SHARE_MAX: Final = 0.02


class LexicalManifest(Struct, frozen=True, kw_only=True):
    """The content of a generation, as of its last recorded commit."""

    schema: int
    analysis: int
    audience: Audience
    generation: str
    watermark: int
    tail: str
    opstamp: int
    """tantivy's count of operations at that commit; it never decreases."""
    rows: int
    dead_rows: int
    """Deleted rows that tantivy has not merged away."""
    files: tuple[FileMark, ...]
    # A manifest without this field may have removed rows.
    removed: int = 1
    """Rows removed since the generation was made, merged away or not: they still affect BM25.

    On a merge tantivy adds up the rounded lengths of the chunks.
    """

    def is_stale(self, share: float) -> bool:
        """Whether over this share of the rows in its statistics is removed."""
        return self.stale_rows > share * (self.rows + self.stale_rows)

    @property
    def stale_rows(self) -> int:
        """Rows that are removed but still in its statistics."""
        return max(self.removed, self.dead_rows)


class TantivyMeta(Struct, frozen=True, kw_only=True):
    """The parts of tantivy's meta.json that this program uses."""

    opstamp: int
    segments: frozenset[str]
    deletions: frozenset[str]
    """Names of the files that list the deleted rows of a segment."""
    rows: int
    dead_rows: int


def folder_of(folder: Path, audience: Audience) -> Path:
    """The folder of an audience's index. An owner's name is hashed: it may be no folder name."""
    kind, _, owner = audience.partition(":")
    if kind == audience:
        return folder / kind
    name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return folder / f"{kind}-{name}"


def manifest_path(folder: Path) -> Path:
    """The path of the manifest of the index in `folder`."""
    return folder / _MANIFEST


def lock_path(folder: Path) -> Path:
    """The path of the index's lock file, which is never removed."""
    return folder / _LOCK


def generation_path(folder: Path, generation: str) -> Path:
    """The folder of a generation."""
    return folder / (_PREFIX + generation)


def draft_path(folder: Path, generation: str) -> Path:
    """The folder of a generation that is being written, before any manifest names it."""
    return folder / (_DRAFT + generation)


def drop_drafts(folder: Path) -> None:
    """Remove the drafts of killed writers. The caller holds the lock on the folder itself."""
    for name in os.listdir(folder):
        if name.startswith(_DRAFT):
            shutil.rmtree(folder / name, ignore_errors=True)


def file_hashes(generation: Path) -> dict[str, str]:
    """The SHA-256 of each file of a generation by name, without meta.json."""
    names = _commit_files(generation, read_meta(generation))
    return {name: sha256_file(generation / name) for name in names}


def load_manifest(folder: Path, audience: Audience) -> tuple[str, LexicalManifest] | None:
    """The manifest and its hash; None where there is none of this schema and audience."""
    loaded = read_sealed_json(manifest_path(folder), LexicalManifest)
    if loaded is None or (loaded[1].schema, loaded[1].audience) != (SCHEMA_VERSION, audience):
        return None
    return loaded


def _hex(segment: dict[str, str]) -> str:
    return segment["segment_id"].replace("-", "")


def read_meta(generation: Path) -> TantivyMeta:
    """What tantivy has committed. Raises CacheDamaged where it cannot be read."""
    try:
        raw = msgspec.json.decode((generation / META).read_bytes())
        segments = raw["segments"]
        deletes_by_segment = {_hex(s): s["deletes"] for s in segments if s["deletes"]}
        dead = sum(deletes["num_deleted_docs"] for deletes in deletes_by_segment.values())
        return TantivyMeta(
            opstamp=int(raw["opstamp"]),
            segments=frozenset(_hex(s) for s in segments),
            deletions=frozenset(
                f"{seg}.{d['opstamp']}{_DELETIONS}" for seg, d in deletes_by_segment.items()
            ),
            rows=sum(s["max_doc"] for s in segments) - dead,
            dead_rows=dead,
        )
    except (OSError, msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CacheDamaged(f"{META}: {error}") from error


def damaged_files(folder: Path, manifest: LexicalManifest, *, by_hash: bool) -> list[str]:
    """The damaged files of the generation, a line each.

    A commit newer than the manifest is no damage (the process was killed in between): its files
    have tantivy's own checksums, and the log from the manifest's watermark on is applied again.
    """
    path = generation_path(folder, manifest.generation)
    marks = {mark.name: mark for mark in manifest.files}
    if stats_match(path, (marks[META],)) and not by_hash:
        return [name for name, mark in marks.items() if not content_matches(path, mark)]
    try:
        meta = read_meta(path)
    except CacheDamaged as error:
        return [str(error)]
    if meta.opstamp < manifest.opstamp:
        return [f"{META} is older than its manifest"]
    if meta.opstamp == manifest.opstamp and not content_matches(path, marks[META], by_hash=True):
        # The same commit must have the same content.
        return [f"{META} is not what was written"]
    names = _commit_files(path, meta)
    segments = {name.partition(".")[0] for name in names}
    problems = [f"segment {missing} is missing" for missing in sorted(meta.segments - segments)]
    for name in sorted(names | _expected(marks, meta)):
        mark = marks.get(name)
        is_sound = (
            content_matches(path, mark, by_hash=by_hash) if mark else _matches_footer(path / name)
        )
        if not is_sound:
            problems.append(name)
    return problems


def _expected(marks: dict[str, FileMark], meta: TantivyMeta) -> set[str]:
    # A newer commit replaces only the list of deletions of a segment.
    return {
        name
        for name in marks
        if name.partition(".")[0] in meta.segments and not name.endswith(_DELETIONS)
    }


def _commit_files(path: Path, meta: TantivyMeta) -> set[str]:
    """The names of a commit's files.

    A list of deletions that the commit does not name is a leftover of an older commit or of a
    killed process, and is not among them.
    """
    try:
        names = {name for name in os.listdir(path) if name.partition(".")[0] in meta.segments}
    except OSError:
        return set()
    return {n for n in names if not n.endswith(_DELETIONS) or n in meta.deletions}


def _matches_footer(path: Path) -> bool:
    """Whether a file matches the CRC-32 in its footer, which tantivy writes at the end.

    The footer is JSON with a key `crc`, then its length and a magic number, 4 bytes each, little
    endian (tantivy, directory/footer.rs).
    """
    try:
        content = path.read_bytes()
        magic = int.from_bytes(content[-4:], "little")
        length = int.from_bytes(content[-8:-4], "little")
        footer = msgspec.json.decode(content[-8 - length : -8])
        return magic == _FOOTER_MAGIC and footer["crc"] == zlib.crc32(content[: -8 - length])
    except (OSError, msgspec.DecodeError, ValueError, KeyError, TypeError):
        return False


def write_manifest(
    folder: Path,
    generation: str,
    position: LogPosition,
    *,
    audience: Audience,
    analysis: int,
    removed: int,
    hashes: Mapping[str, str] | None = None,
) -> None:
    """Write the manifest of a generation as it is now; known hashes are not computed again."""
    path = generation_path(folder, generation)
    meta = read_meta(path)
    previous = load_manifest(folder, audience)
    known_hashes = dict(hashes or {})
    if previous and previous[1].generation == generation:
        # Segment files never change, and the hash of the time of writing detects later damage.
        known_hashes |= {mark.name: mark.sha256 for mark in previous[1].files if mark.name != META}
    marks = [
        mark_file(path / name, known_hashes.get(name)) for name in sorted(_commit_files(path, meta))
    ]
    record = LexicalManifest(
        schema=SCHEMA_VERSION,
        analysis=analysis,
        audience=audience,
        generation=generation,
        watermark=position.watermark,
        tail=position.tail,
        opstamp=meta.opstamp,
        rows=meta.rows,
        dead_rows=meta.dead_rows,
        files=(*marks, mark_file(path / META)),
        removed=removed,
    )
    temporary = write_temporary(manifest_path(folder), sealed_json(record))
    os.replace(temporary, manifest_path(folder))
    fsync_folder(folder)
    failpoint("lexical.after_manifest")


def drop_other_generations(folder: Path, keep: str) -> None:
    """Remove all generations but `keep`; readers keep their mapped files."""
    for name in os.listdir(folder):
        if name.startswith(_PREFIX) and name != _PREFIX + keep:
            shutil.rmtree(folder / name, ignore_errors=True)
    with suppress(OSError):
        manifest_path(folder).with_name(manifest_path(folder).name + ".new").unlink()


def remove_index(folder: Path, is_unused: Callable[[], bool] = lambda: True) -> None:
    """Remove the index in `folder`, except its lock file, if `is_unused` under the lock.

    An index that is being written or cannot be removed stays.
    """
    with suppress(OSError, StoreBusy), file_lock(lock_path(folder), 0.0):
        if is_unused():
            manifest_path(folder).unlink(missing_ok=True)
            drop_other_generations(folder, "")
            with file_lock(folder, 0.0):
                drop_drafts(folder)
