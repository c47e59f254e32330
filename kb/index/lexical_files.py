"""The lexical index at rest: one folder to a generation, and the manifest that names it."""

import json
import os
import shutil
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.failpoints import failpoint
from kb.index.files import (
    CacheDamaged,
    FileMark,
    fsync_folder,
    intact,
    mark_file,
    read_manifest,
    seal,
    untouched,
    write_beside,
)

SCHEMA_VERSION: Final = 2
META: Final = "meta.json"
_PREFIX: Final = "g-"
_FOOTER_MAGIC: Final = 1337


class LexicalManifest(Struct, frozen=True, kw_only=True):
    """What a generation holds, as of its last recorded commit."""

    schema: int
    analysis: int
    generation: str
    watermark: int
    tail: str
    opstamp: int
    """tantivy's count of operations at that commit; it never goes back."""
    rows: int
    files: tuple[FileMark, ...]


class Meta(Struct, frozen=True, kw_only=True):
    """The parts of tantivy's meta.json that we rely on."""

    opstamp: int
    segments: frozenset[str]
    rows: int
    dead_rows: int


def manifest_path(folder: Path) -> Path:
    """Where the manifest of the index in `folder` lies."""
    return folder / "manifest.json"


def generation_path(folder: Path, generation: str) -> Path:
    """Where the files of a generation lie."""
    return folder / (_PREFIX + generation)


def load_manifest(folder: Path) -> tuple[str, LexicalManifest] | None:
    """The manifest and its hash; None where there is none that this program made."""
    found = read_manifest(manifest_path(folder), LexicalManifest)
    return found if found and found[1].schema == SCHEMA_VERSION else None


def read_meta(generation: Path) -> Meta:
    """What tantivy says it holds. Raises CacheDamaged where it cannot be read."""
    try:
        raw = json.loads((generation / META).read_bytes())
        segments = raw["segments"]
        dead = sum((s["deletes"] or {}).get("num_deleted_docs", 0) for s in segments)
        return Meta(
            opstamp=int(raw["opstamp"]),
            segments=frozenset(s["segment_id"].replace("-", "") for s in segments),
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
        if name.partition(".")[0] in meta.segments and not name.endswith(".del")
    }


def _files_of(path: Path, meta: Meta) -> set[str]:
    try:
        return {name for name in os.listdir(path) if name.partition(".")[0] in meta.segments}
    except OSError:
        return set()


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
    folder: Path, generation: str, *, watermark: int, tail: str, analysis: int
) -> None:
    """Record what a generation holds now; hashes of files known before are kept."""
    path = generation_path(folder, generation)
    meta = read_meta(path)
    before = load_manifest(folder)
    known: dict[str, str] = {}
    if before and before[1].generation == generation:
        # Segment files never change once written; a hash made at the time is worth more.
        known = {mark.name: mark.sha256 for mark in before[1].files if mark.name != META}
    marks = [mark_file(path / name, known.get(name)) for name in sorted(_files_of(path, meta))]
    record = LexicalManifest(
        schema=SCHEMA_VERSION,
        analysis=analysis,
        generation=generation,
        watermark=watermark,
        tail=tail,
        opstamp=meta.opstamp,
        rows=meta.rows,
        files=(*marks, mark_file(path / META)),
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
