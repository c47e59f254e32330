"""Publishes a folder of entries as a registry; embeds and writes only what has changed."""

import base64
import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.errors import HeldBack, NotFound, SourceError, TooLarge, UsageError
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.sync.read import read_file
from kb.intake.sync.walk import WalkedFile, walk
from kb.knowledge.entries import Entry, EntryFault, compare, id_line, parse
from kb.knowledge.packs.keys import is_signed, public_of
from kb.knowledge.registry.front import EmbeddingBlock, with_embedding, without_embedding
from kb.knowledge.registry.index import (
    ENTRIES_MAX,
    ENTRY_BYTES_MAX,
    INDEX,
    INDEX_BYTES_MAX,
    SIGNATURE,
    VECTORS_BYTES_MAX,
    Index,
    IndexEntry,
    VectorFile,
    encoded,
    entry_path,
    parse_index,
    vector_path,
)
from kb.knowledge.registry.target import RegistryTarget
from kb.knowledge.registry.vectors import Embedded, Pipeline, embedded, markdown_of
from kb.model.clock import Clock
from kb.model.ids import sha256_hex
from kb.model.source import display_name

if TYPE_CHECKING:
    from nacl.signing import SigningKey

_EXTENSIONS: Final = ("md", "markdown")
_BATCH: Final = 64


class PublishProblem(Struct, frozen=True, kw_only=True):
    """Why a file is not published; line 0 means the whole file."""

    file: str
    line: int
    detail: str


class Published(Struct, frozen=True, kw_only=True):
    """The result of publishing a registry. entries = new + updated + unchanged, always."""

    to: str
    entries: int
    new: int
    updated: int
    unchanged: int
    removed: int
    """How many entries it no longer has."""
    embedded: int
    """How many chunks were embedded."""
    signed_by: str
    """The public key; empty if unsigned."""
    problems: tuple[PublishProblem, ...]


class NotPublished(HeldBack):
    """Some files have problems, so nothing was published. The problems say which."""

    template = "{detail}"

    def __init__(self, problems: tuple[PublishProblem, ...]) -> None:
        """Keep the problems beside the message."""
        count = "a problem was" if len(problems) == 1 else f"{len(problems):,} problems were"
        super().__init__(f"{count} found, so nothing was published; --skip-bad publishes the rest")
        self.problems = problems


class _EntryFile(Struct, frozen=True, kw_only=True):
    """An entry's file in the folder."""

    file: str
    text: str
    entry: Entry

    @property
    def ident(self) -> str:
        return self.entry.meta.zettel_id


class _Existing(Struct, frozen=True, kw_only=True):
    """The registry as it was published before."""

    index: Index
    data: bytes
    texts: dict[str, str]
    """Texts of entries by id; only of files that match the hash in the index."""


def publish(
    folder: Path,
    target: RegistryTarget,
    pipeline: Pipeline,
    clock: Clock,
    *,
    to: str,
    key: "SigningKey | None" = None,
    skip_bad: bool = False,
) -> Published:
    """Publish the entries below `folder`; equal input gives equal bytes.

    A text may change only together with its version. With `skip_bad` faulty files are left out, and
    their published versions stay; without it they raise NotPublished. Raises UsageError, NotFound
    if there is nothing to publish, TooLarge, and what the target raises.
    """
    existing = _read_existing(target, to)
    entry_files, problems = _read(folder)
    entry_files, version_problems = _without_stale(entry_files, existing)
    problems = (*problems, *version_problems)
    if problems and not skip_bad:
        raise NotPublished(problems)
    if not entry_files:
        raise NotFound(f"no entry is in {display_name(folder)}")
    before = {entry.zettel_id: entry for entry in existing.index.entries}
    files: dict[str, bytes] = {}
    entries: list[IndexEntry] = []
    embedded_count = 0
    for entry, count in _entries(entry_files, target, existing, pipeline, clock, files):
        entries.append(entry)
        embedded_count += count
    if problems:
        ids = {entry.zettel_id for entry in entries}
        entries += [entry for ident, entry in before.items() if ident not in ids]
    index = _index(entries, existing, pipeline, clock)
    signed_by = _seal(index, existing, files, target, key)
    obsolete = _paths(existing.index) - _paths(index)
    if signed_by is None and INDEX in files:
        obsolete.add(SIGNATURE)
    target.write(files, obsolete)
    entries_by_id = {entry.zettel_id: entry for entry in index.entries}
    unchanged = sum(before.get(ident) == entry for ident, entry in entries_by_id.items())
    new = len(entries_by_id.keys() - before.keys())
    return Published(
        to=to,
        entries=len(entries_by_id),
        new=new,
        updated=len(entries_by_id) - new - unchanged,
        unchanged=unchanged,
        removed=len(before.keys() - entries_by_id.keys()),
        embedded=embedded_count,
        signed_by=signed_by or "",
        problems=problems,
    )


def _read_existing(target: RegistryTarget, to: str) -> _Existing:
    data = target.read(INDEX, INDEX_BYTES_MAX)
    if data is None:
        empty = Index(generated="", fingerprints={}, entries=())
        return _Existing(index=empty, data=b"", texts={})
    index = parse_index(data, to)
    texts = {}
    for entry in index.entries:
        entry_data = target.read(entry.path, ENTRY_BYTES_MAX)
        if entry_data is not None and sha256_hex(entry_data) == entry.sha256:
            texts[entry.zettel_id] = entry_data.decode("utf-8", "replace")
    return _Existing(index=index, data=data, texts=texts)


def _read(folder: Path) -> tuple[list[_EntryFile], tuple[PublishProblem, ...]]:
    """The entries of a folder by id, and the problems of its other files."""
    if not folder.is_dir():
        raise UsageError(f"{display_name(folder)} is not a folder")
    entry_files: dict[str, _EntryFile] = {}
    problems: list[PublishProblem] = []
    for item in walk(folder, _EXTENSIONS):
        name = display_name(item.path)
        if not isinstance(item, WalkedFile):
            if item.failed:
                problems.append(PublishProblem(file=name, line=0, detail=item.reason))
            continue
        parsed = _entry_file(item.path, name)
        if isinstance(parsed, _EntryFile):
            first = entry_files.setdefault(parsed.ident, parsed)
            if first is not parsed:
                detail = f"{first.file} already has the id {parsed.ident}"
                problems.append(PublishProblem(file=name, line=id_line(parsed.text), detail=detail))
        else:
            problems += [
                PublishProblem(file=name, line=fault.line, detail=fault.detail) for fault in parsed
            ]
    if len(entry_files) > ENTRIES_MAX:
        raise TooLarge(f"over {ENTRIES_MAX:,} entries", source=display_name(folder))
    return [entry_files[ident] for ident in sorted(entry_files)], tuple(problems)


def _entry_file(path: Path, name: str) -> _EntryFile | tuple[EntryFault, ...]:
    try:
        data, _ = read_file(path, ENTRY_BYTES_MAX // 2, 0)
        text = clean_text(decode_text(data)[0])
        parsed = parse(text)
        if isinstance(parsed, Entry):
            markdown_of(text.encode(), path.name)
    except SourceError as error:
        return (EntryFault(line=0, detail=error.reason),)
    return _EntryFile(file=name, text=text, entry=parsed) if isinstance(parsed, Entry) else parsed


def _without_stale(
    entry_files: Sequence[_EntryFile], existing: _Existing
) -> tuple[list[_EntryFile], list[PublishProblem]]:
    """The files with a valid next version, and a problem for each of the others."""
    before = {entry.zettel_id: entry for entry in existing.index.entries}
    good: list[_EntryFile] = []
    problems: list[PublishProblem] = []
    for file in entry_files:
        wrong = _problem(file, before.get(file.ident), existing.texts.get(file.ident))
        if wrong is None:
            good.append(file)
        else:
            line = id_line(file.text)
            problems.append(PublishProblem(file=file.file, line=line, detail=wrong))
    return good, problems


def _problem(file: _EntryFile, before: IndexEntry | None, text: str | None) -> str | None:
    filled = with_embedding(file.text, _embedding("m", 1, 0, "2000-01-01"))
    if isinstance(filled, EntryFault):
        return filled.detail
    if before is None:
        return None
    version = file.entry.meta.version
    step = compare(version, before.version)
    if step < 0:
        return f"{file.ident} {version} is lower than {before.version}, which is published"
    if step == 0 and text is not None and without_embedding(text) != without_embedding(file.text):
        return f"the text of {file.ident} has changed, but its version is still {version}"
    return None


def _entries(
    entry_files: Sequence[_EntryFile],
    target: RegistryTarget,
    existing: _Existing,
    pipeline: Pipeline,
    clock: Clock,
    files: dict[str, bytes],
) -> Iterator[tuple[IndexEntry, int]]:
    """Each entry as the index will have it, and how many of its chunks were embedded.

    Adds the files to write to `files`.
    """
    before = {entry.zettel_id: entry for entry in existing.index.entries}
    changed: list[tuple[_EntryFile, IndexEntry | None]] = []
    for file in entry_files:
        published = before.get(file.ident)
        text = existing.texts.get(file.ident)
        is_same = text is not None and without_embedding(text) == without_embedding(file.text)
        if is_same and published is not None and _has_vectors(target, published, pipeline):
            yield published, 0
        else:
            changed.append((file, published if is_same else None))
    for first in range(0, len(changed), _BATCH):
        batch = changed[first : first + _BATCH]
        sources = [(file.entry, markdown_of(file.text.encode(), file.ident)) for file, _ in batch]
        batch_embedded = embedded(sources, pipeline)
        for (file, published), embedded_entry in zip(batch, batch_embedded, strict=True):
            yield (
                _entry(file, published, embedded_entry, pipeline, clock, files),
                embedded_entry.chunks,
            )


def _has_vectors(target: RegistryTarget, entry: IndexEntry, pipeline: Pipeline) -> bool:
    file = entry.vectors.get(pipeline.made_by.key)
    if file is None:
        return False
    data = target.read(file.path, VECTORS_BYTES_MAX)
    return data is not None and sha256_hex(data) == file.sha256


def _entry(
    file: _EntryFile,
    published: IndexEntry | None,
    embedding: Embedded,
    pipeline: Pipeline,
    clock: Clock,
    files: dict[str, bytes],
) -> IndexEntry:
    """An entry that was embedded now.

    `published` is the published entry if it has the same text: its vectors of other models stay.
    """
    made_by = pipeline.made_by
    block = _embedding(made_by.model, made_by.dim, embedding.chunks, _iso(clock))
    if len(embedding.data) > VECTORS_BYTES_MAX:
        raise TooLarge(f"its vectors are over {VECTORS_BYTES_MAX:,} bytes", source=file.file)
    filled = with_embedding(file.text, block)
    assert isinstance(filled, str)
    data = filled.encode()
    path = entry_path(file.ident)
    vectors = VectorFile(
        path=vector_path(made_by.key, file.ident),
        sha256=sha256_hex(embedding.data),
        size=len(embedding.data),
    )
    files[path] = data
    files[vectors.path] = embedding.data
    others = published.vectors if published else {}
    return IndexEntry(
        zettel_id=file.ident,
        title=file.entry.title,
        entry_type=file.entry.meta.entry_type,
        version=file.entry.meta.version,
        tags=file.entry.tags,
        path=path,
        sha256=sha256_hex(data),
        size=len(data),
        vectors={**others, made_by.key: vectors},
    )


def _index(
    entries: Sequence[IndexEntry], existing: _Existing, pipeline: Pipeline, clock: Clock
) -> Index:
    used = {key for entry in entries for key in entry.vectors}
    sets = {**existing.index.fingerprints, pipeline.made_by.key: pipeline.made_by}
    index = Index(
        generated=existing.index.generated,
        fingerprints={key: sets[key] for key in sorted(used)},
        entries=tuple(sorted(entries, key=lambda entry: entry.zettel_id)),
    )
    # An unchanged entry also keeps its time.
    return (
        index if index == existing.index else msgspec.structs.replace(index, generated=_iso(clock))
    )


def _seal(
    index: Index,
    existing: _Existing,
    files: dict[str, bytes],
    target: RegistryTarget,
    key: "SigningKey | None",
) -> str | None:
    """Add the index and its signature if they change; returns the signing key, or None."""
    data = encoded(index)
    if len(data) > INDEX_BYTES_MAX:
        raise TooLarge(f"its index is over {INDEX_BYTES_MAX:,} bytes", source=INDEX)
    if data != existing.data:
        files[INDEX] = data
    if key is None:
        return None
    public = public_of(key)
    signature = target.read(SIGNATURE, 4_096) or b""
    if data != existing.data or not is_signed(
        public, signature.decode("ascii", "replace").strip(), data
    ):
        files[SIGNATURE] = base64.b64encode(key.sign(data).signature) + b"\n"
    return public


def _paths(index: Index) -> set[str]:
    files = {file.path for entry in index.entries for file in entry.vectors.values()}
    return files | {entry.path for entry in index.entries}


def _embedding(model: str, dim: int, chunks: int, when: str) -> EmbeddingBlock:
    return EmbeddingBlock(model=model, dimensions=dim, chunks=chunks, last_computed=when)


def _iso(clock: Clock) -> str:
    now = dt.datetime.fromtimestamp(clock.now_ms() // 1000, dt.UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
