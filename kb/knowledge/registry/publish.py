"""From a folder of entries to a registry: only what changed is made and written anew."""

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
from kb.intake.sync.walk import Found, walk
from kb.knowledge.entries import Entry, Fault, compare, id_line, parse
from kb.knowledge.packs.keys import is_signed, public_of
from kb.knowledge.registry.front import Embedding, with_embedding, without_embedding
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
from kb.knowledge.registry.place import Place
from kb.knowledge.registry.vectors import Embedded, Pipeline, embedded, markdown_of
from kb.model.clock import Clock
from kb.model.ids import sha256_hex
from kb.model.source import display_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_EXTENSIONS: Final = ("md", "markdown")
_BATCH: Final = 64


class PublishProblem(Struct, frozen=True, kw_only=True):
    """What keeps a file from being published; line 0 is the file as a whole."""

    file: str
    line: int
    detail: str


class Published(Struct, frozen=True, kw_only=True):
    """What became of a registry. entries = new + updated + unchanged, always."""

    to: str
    entries: int
    new: int
    updated: int
    unchanged: int
    removed: int
    """Entries that are not in it any more."""
    embedded: int
    """Passages that vectors were made of."""
    signed_by: str
    """The public key; empty where nobody signed."""
    problems: tuple[PublishProblem, ...]


class NotPublished(HeldBack):
    """Some files are wrong, so that nothing was published. The problems say which."""

    template = "{detail}"

    def __init__(self, problems: tuple[PublishProblem, ...]) -> None:
        """Keep the problems beside the message."""
        count = "a problem was" if len(problems) == 1 else f"{len(problems):,} problems were"
        super().__init__(f"{count} found, and nothing was published; --skip-bad leaves those out")
        self.problems = problems


class _Draft(Struct, frozen=True, kw_only=True):
    """A file of the folder that is an entry."""

    file: str
    text: str
    entry: Entry

    @property
    def ident(self) -> str:
        return self.entry.meta.zettel_id


class _Old(Struct, frozen=True, kw_only=True):
    """What is published there already."""

    index: Index
    data: bytes
    texts: dict[str, str]
    """By id; of files that are what the index says."""


def publish(
    folder: Path,
    place: Place,
    pipeline: Pipeline,
    clock: Clock,
    *,
    to: str,
    key: "Ed25519PrivateKey | None" = None,
    skip_bad: bool = False,
) -> Published:
    """Have the entries below `folder` in a registry; equal input gives equal bytes.

    A text may change with its version only. With `skip_bad` what is wrong is left out, and what
    was published of it before stays. Raises NotPublished without; UsageError, NotFound where there
    is nothing to publish, TooLarge, and what the place raises.
    """
    old = _published(place, to)
    drafts, problems = _read(folder)
    drafts, moved = _checked(drafts, old)
    problems = (*problems, *moved)
    if problems and not skip_bad:
        raise NotPublished(problems)
    if not drafts:
        raise NotFound(f"no entry is in {display_name(folder)}")
    kept = {one.zettel_id: one for one in old.index.entries}
    files: dict[str, bytes] = {}
    entries: list[IndexEntry] = []
    made = 0
    for entry, passages in _entries(drafts, place, old, pipeline, clock, files):
        entries.append(entry)
        made += passages
    if problems:
        here = {entry.zettel_id for entry in entries}
        entries += [one for ident, one in kept.items() if ident not in here]
    index = _index(entries, old, pipeline, clock)
    signed_by = _seal(index, old, files, place, key)
    gone = _paths(old.index) - _paths(index)
    if signed_by is None and INDEX in files:
        gone.add(SIGNATURE)
    place.write(files, gone)
    now = {entry.zettel_id: entry for entry in index.entries}
    same = sum(kept.get(ident) == entry for ident, entry in now.items())
    new = len(now.keys() - kept.keys())
    return Published(
        to=to,
        entries=len(now),
        new=new,
        updated=len(now) - new - same,
        unchanged=same,
        removed=len(kept.keys() - now.keys()),
        embedded=made,
        signed_by=signed_by or "",
        problems=problems,
    )


def _published(place: Place, to: str) -> _Old:
    data = place.read(INDEX, INDEX_BYTES_MAX)
    if data is None:
        empty = Index(generated="", fingerprints={}, entries=())
        return _Old(index=empty, data=b"", texts={})
    index = parse_index(data, to)
    texts = {}
    for one in index.entries:
        found = place.read(one.path, ENTRY_BYTES_MAX)
        if found is not None and sha256_hex(found) == one.sha256:
            texts[one.zettel_id] = found.decode("utf-8", "replace")
    return _Old(index=index, data=data, texts=texts)


def _read(folder: Path) -> tuple[list[_Draft], tuple[PublishProblem, ...]]:
    """The entries of a folder by id, and what is wrong with its other files."""
    if not folder.is_dir():
        raise UsageError(f"{display_name(folder)} is no folder")
    drafts: dict[str, _Draft] = {}
    problems: list[PublishProblem] = []
    for seen in walk(folder, _EXTENSIONS):
        name = display_name(seen.path)
        if not isinstance(seen, Found):
            if seen.failed:
                problems.append(PublishProblem(file=name, line=0, detail=seen.reason))
            continue
        read = _draft(seen.path, name)
        if isinstance(read, _Draft):
            first = drafts.setdefault(read.ident, read)
            if first is not read:
                said = f"{read.ident} is the id of {first.file} already"
                problems.append(PublishProblem(file=name, line=id_line(read.text), detail=said))
        else:
            problems += [
                PublishProblem(file=name, line=fault.line, detail=fault.detail) for fault in read
            ]
    if len(drafts) > ENTRIES_MAX:
        raise TooLarge(f"over {ENTRIES_MAX:,} entries", source=display_name(folder))
    return [drafts[ident] for ident in sorted(drafts)], tuple(problems)


def _draft(path: Path, name: str) -> _Draft | tuple[Fault, ...]:
    try:
        data, _ = read_file(path, ENTRY_BYTES_MAX // 2, 0)
        text = clean_text(decode_text(data)[0])
        said = parse(text)
        if isinstance(said, Entry):
            markdown_of(text.encode(), path.name)
    except SourceError as error:
        return (Fault(line=0, detail=error.reason),)
    return _Draft(file=name, text=text, entry=said) if isinstance(said, Entry) else said


def _checked(drafts: Sequence[_Draft], old: _Old) -> tuple[list[_Draft], list[PublishProblem]]:
    """Those whose versions go on from what is published, and a problem for each other one."""
    before = {one.zettel_id: one for one in old.index.entries}
    good: list[_Draft] = []
    problems: list[PublishProblem] = []
    for draft in drafts:
        wrong = _wrong(draft, before.get(draft.ident), old.texts.get(draft.ident))
        if wrong is None:
            good.append(draft)
        else:
            line = id_line(draft.text)
            problems.append(PublishProblem(file=draft.file, line=line, detail=wrong))
    return good, problems


def _wrong(draft: _Draft, before: IndexEntry | None, text: str | None) -> str | None:
    filled = with_embedding(draft.text, _embedding("m", 1, 0, "2000-01-01"))
    if isinstance(filled, Fault):
        return filled.detail
    if before is None:
        return None
    version = draft.entry.meta.version
    step = compare(version, before.version)
    if step < 0:
        return f"{draft.ident} {version} comes before {before.version}, which is published"
    if step == 0 and text is not None and without_embedding(text) != without_embedding(draft.text):
        return f"the text of {draft.ident} has changed, and its version is still {version}"
    return None


def _entries(
    drafts: Sequence[_Draft],
    place: Place,
    old: _Old,
    pipeline: Pipeline,
    clock: Clock,
    files: dict[str, bytes],
) -> Iterator[tuple[IndexEntry, int]]:
    """Each entry as the index will have it, and how many of its passages were embedded.

    The files that are to be written come into `files`.
    """
    before = {one.zettel_id: one for one in old.index.entries}
    changed: list[tuple[_Draft, IndexEntry | None]] = []
    for draft in drafts:
        known = before.get(draft.ident)
        text = old.texts.get(draft.ident)
        is_same = text is not None and without_embedding(text) == without_embedding(draft.text)
        if is_same and known is not None and _has_vectors(place, known, pipeline):
            yield known, 0
        else:
            changed.append((draft, known if is_same else None))
    for first in range(0, len(changed), _BATCH):
        some = changed[first : first + _BATCH]
        sources = [
            (draft.entry, markdown_of(draft.text.encode(), draft.ident)) for draft, _ in some
        ]
        done = embedded(sources, pipeline)
        for (draft, same), made in zip(some, done, strict=True):
            yield _entry(draft, same, made, pipeline, clock, files), made.passages


def _has_vectors(place: Place, known: IndexEntry, pipeline: Pipeline) -> bool:
    file = known.vectors.get(pipeline.made_by.key)
    if file is None:
        return False
    data = place.read(file.path, VECTORS_BYTES_MAX)
    return data is not None and sha256_hex(data) == file.sha256


def _entry(
    draft: _Draft,
    same: IndexEntry | None,
    made: Embedded,
    pipeline: Pipeline,
    clock: Clock,
    files: dict[str, bytes],
) -> IndexEntry:
    """An entry whose vectors were made now; of `same` text those of other models stay good."""
    by = pipeline.made_by
    block = _embedding(by.model, by.dim, made.passages, _iso(clock))
    if len(made.data) > VECTORS_BYTES_MAX:
        raise TooLarge(f"its vectors are over {VECTORS_BYTES_MAX:,} bytes", source=draft.file)
    filled = with_embedding(draft.text, block)
    assert isinstance(filled, str)
    data = filled.encode()
    path = entry_path(draft.ident)
    vectors = VectorFile(
        path=vector_path(by.key, draft.ident), sha256=sha256_hex(made.data), size=len(made.data)
    )
    files[path] = data
    files[vectors.path] = made.data
    others = same.vectors if same else {}
    return IndexEntry(
        zettel_id=draft.ident,
        title=draft.entry.title,
        entry_type=draft.entry.meta.entry_type,
        version=draft.entry.meta.version,
        tags=draft.entry.tags,
        path=path,
        sha256=sha256_hex(data),
        size=len(data),
        vectors={**others, by.key: vectors},
    )


def _index(entries: Sequence[IndexEntry], old: _Old, pipeline: Pipeline, clock: Clock) -> Index:
    used = {key for entry in entries for key in entry.vectors}
    sets = {**old.index.fingerprints, pipeline.made_by.key: pipeline.made_by}
    index = Index(
        generated=old.index.generated,
        fingerprints={key: sets[key] for key in sorted(used)},
        entries=tuple(sorted(entries, key=lambda one: one.zettel_id)),
    )
    # What is as it was says so by its time, too.
    return index if index == old.index else msgspec.structs.replace(index, generated=_iso(clock))


def _seal(
    index: Index,
    old: _Old,
    files: dict[str, bytes],
    place: Place,
    key: "Ed25519PrivateKey | None",
) -> str | None:
    """Add the index and its signature where they change; who signed it, None for nobody."""
    data = encoded(index)
    if len(data) > INDEX_BYTES_MAX:
        raise TooLarge(f"its index is over {INDEX_BYTES_MAX:,} bytes", source=INDEX)
    if data != old.data:
        files[INDEX] = data
    if key is None:
        return None
    public = public_of(key)
    said = place.read(SIGNATURE, 4_096) or b""
    if data != old.data or not is_signed(public, said.decode("ascii", "replace").strip(), data):
        files[SIGNATURE] = base64.b64encode(key.sign(data)) + b"\n"
    return public


def _paths(index: Index) -> set[str]:
    files = {file.path for entry in index.entries for file in entry.vectors.values()}
    return files | {entry.path for entry in index.entries}


def _embedding(model: str, dim: int, chunks: int, when: str) -> Embedding:
    return Embedding(model=model, dimensions=dim, chunks=chunks, last_computed=when)


def _iso(clock: Clock) -> str:
    now = dt.datetime.fromtimestamp(clock.now_ms() // 1000, dt.UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
