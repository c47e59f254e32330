"""Docs, their versions and their facets."""

# Long because each change of a doc keeps its facets and its audience level with it.

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final, get_args

import msgspec

from kb.errors import AmbiguousId, NotFound, ShortId, StoreDamaged
from kb.model.doc import Audience, Doc, Scope, VersionPointer, is_tag_within
from kb.model.file_kinds import FileKind
from kb.model.ids import ID_PREFIX_MIN, ChunkId, DocId, Lsid, SourceNo
from kb.model.mail import is_person
from kb.model.search import Filters
from kb.model.source import file_of, holds_parts, is_within, kind_of_source
from kb.store.codec import from_u64, u64
from kb.store.keys import facet_key, facet_prefix, lsid_key, text_key, text_of
from kb.store.kv import ReadTxn, WriteTxn, prefix_stop
from kb.store.link_names import link_facets
from kb.store.meta import next_number
from kb.store.records import (
    CHUNK_IDS,
    CHUNKS,
    DOCS,
    LSIDS,
    SEEN,
    SOURCE_DOCS,
    VERSIONS,
    DocRef,
    SourceRef,
)

_CANDIDATES_SHOWN: Final = 4
_PARTS_AT_ONCE: Final = 256
_YEAR: Final = 4
_SOURCE: Final = b"source\0"
_ADDRESSES: Final = (_SOURCE + b"http://", _SOURCE + b"https://", _SOURCE + b"git+")


def get(txn: ReadTxn, doc_id: str) -> Doc | None:
    """The doc, or None."""
    return DOCS.get(txn, doc_id.encode())


def expect(txn: ReadTxn, doc_ids: Iterable[DocId]) -> None:
    """Say that these docs are read next."""
    txn.expect("docs", (doc_id.encode() for doc_id in doc_ids))


def require(txn: ReadTxn, doc_id: str) -> Doc:
    """The doc. Raises NotFound."""
    doc = get(txn, doc_id)
    if doc is None:
        raise NotFound(id=doc_id)
    return doc


def all_docs(txn: ReadTxn) -> Iterator[Doc]:
    """Every doc with a record, of any version and status."""
    for _, doc in DOCS.scan(txn):
        yield doc


def source_no_of(txn: ReadTxn, lsid: Lsid) -> SourceNo | None:
    """The number of a known logical source, or None."""
    ref = LSIDS.get(txn, lsid_key(lsid))
    return ref.source_no if ref else None


def ensure_source_no(txn: WriteTxn, lsid: Lsid) -> SourceNo:
    """The number of a logical source; a new source gets the next one."""
    existing = source_no_of(txn, lsid)
    if existing is not None:
        return existing
    number = SourceNo(next_number(txn, "source"))
    LSIDS.put(txn, lsid_key(lsid), SourceRef(source_no=number, lsid=lsid))
    return number


def latest(txn: ReadTxn, source_no: int) -> Doc | None:
    """The newest version of a source, or None."""
    pointer = VERSIONS.get(txn, u64(source_no))
    return get(txn, pointer.doc_id) if pointer else None


def expect_latest(txn: ReadTxn, source_nos: Iterable[int]) -> None:
    """Say that `latest` is asked for these sources next."""
    expect(txn, _latest_ids(txn, source_nos))


def expect_with_latest(txn: ReadTxn, doc_ids: Iterable[DocId]) -> None:
    """Say that these docs are read next, and the newest versions of their sources."""
    expect_latest(txn, (doc.source_no for doc in _sound(txn, doc_ids)))


def _sound(txn: ReadTxn, doc_ids: Iterable[DocId]) -> Iterator[Doc]:
    keys = [doc_id.encode() for doc_id in doc_ids]
    txn.expect("docs", keys)
    yield from filter(None, (DOCS.peek(txn, key) for key in keys))


def _latest_ids(txn: ReadTxn, source_nos: Iterable[int]) -> Iterator[DocId]:
    keys = [u64(number) for number in dict.fromkeys(source_nos)]
    txn.expect("versions", keys)
    pointers = (VERSIONS.peek(txn, key) for key in keys)
    yield from (pointer.doc_id for pointer in pointers if pointer is not None)


def if_latest(txn: ReadTxn, doc_id: DocId) -> Doc | None:
    """The doc, unless a later version of its source has come."""
    doc = get(txn, doc_id)
    newest = latest(txn, doc.source_no) if doc else None
    return doc if newest is not None and newest.doc_id == doc_id else None


def latest_of(txn: ReadTxn, lsid: Lsid) -> Doc | None:
    """The newest version of a logical source, or None."""
    number = source_no_of(txn, lsid)
    return latest(txn, number) if number is not None else None


def release_place(txn: WriteTxn, doc: Doc) -> None:
    """Free the place of a doc, unless another source has it now."""
    if source_no_of(txn, doc.place) == doc.source_no:
        LSIDS.delete(txn, lsid_key(doc.place))
        SEEN.delete(txn, lsid_key(doc.place))


def put_new_version(txn: WriteTxn, doc: Doc) -> None:
    """Write a doc as the newest version of its source; its facets replace the previous ones.

    Raises StoreDamaged before writing if another source has the doc's id.
    """
    existing = get(txn, doc.doc_id)
    if existing is not None and existing.source_no != doc.source_no:
        raise StoreDamaged("another source has its id; see `kb check`", place=doc.doc_id)
    previous = latest(txn, doc.source_no)
    if previous:
        _drop_facets(txn, previous)
        if previous.status == "active":
            DOCS.put(
                txn,
                previous.doc_id.encode(),
                msgspec.structs.replace(previous, status="superseded"),
            )
    pointer = VersionPointer(doc_id=doc.doc_id, version=doc.version, source_no=doc.source_no)
    VERSIONS.put(txn, u64(doc.source_no), pointer)
    SOURCE_DOCS.put(txn, u64(doc.source_no) + u64(doc.version), DocRef(doc_id=doc.doc_id))
    DOCS.put(txn, doc.doc_id.encode(), doc)
    _put_facets(txn, doc)


def replace(txn: WriteTxn, doc: Doc) -> None:
    """Write the newest version again with changed tags, title, status or visibility."""
    previous = latest(txn, doc.source_no)
    if previous:
        _drop_facets(txn, previous)
    DOCS.put(txn, doc.doc_id.encode(), doc)
    _put_facets(txn, doc)


def versions(txn: ReadTxn, source_no: int) -> Iterator[DocId]:
    """Ids of every version with a record, oldest first."""
    for _, ref in SOURCE_DOCS.scan(txn, u64(source_no)):
        yield ref.doc_id


def all_latest(txn: ReadTxn) -> Iterator[Doc]:
    """The newest version of every source, in order of source number."""
    for _, pointer in VERSIONS.scan(txn):
        doc = get(txn, pointer.doc_id)
        if doc is not None:
            yield doc


def with_facet(txn: ReadTxn, name: str, value: str) -> Iterator[SourceNo]:
    """Numbers of the sources whose newest version is active and has this facet value."""
    prefix = facet_prefix(name, value)
    for key, _ in txn.scan("facets", prefix, prefix_stop(prefix)):
        yield SourceNo(from_u64(key[-8:]))


def expect_facet(txn: ReadTxn, name: str, value: str) -> None:
    """Say that `with_facet` is asked for this value next."""
    prefix = facet_prefix(name, value)
    txn.expect_scan("facets", prefix, prefix_stop(prefix))


def expect_audiences(txn: ReadTxn) -> None:
    """Say that `audiences` is asked next."""
    bounds = b"audience\0", prefix_stop(b"audience\0")
    txn.expect_scan("facets", *bounds)
    txn.expect_scan("facets", *bounds, reverse=True)


def facet_values(txn: ReadTxn, name: str) -> Iterator[tuple[str, SourceNo]]:
    """Pairs of facet value and source, by value; without values stored as a hash."""
    head = name.encode("ascii") + b"\0"
    for key, _ in txn.scan("facets", head, prefix_stop(head)):
        value = text_of(key[len(head) : -9])
        if value is not None:
            yield value, SourceNo(from_u64(key[-8:]))


def within(txn: ReadTxn, place: str) -> set[SourceNo]:
    """Numbers of the active sources at, in or below a file, folder or URL.

    Sources stored under a hash of their name are all read at every call.
    """
    numbers = set(with_facet(txn, "source", place))
    head = _SOURCE
    for start in (place.rstrip("/") + "/", *([place + "#"] if holds_parts(place) else [])):
        below = head + start.encode("utf-8", "surrogatepass")
        numbers |= {
            SourceNo(from_u64(k[-8:])) for k, _ in txn.scan("facets", below, prefix_stop(below))
        }
    hashed = head + text_key("")[:1]
    for key, _ in txn.scan("facets", hashed, prefix_stop(hashed)):
        doc = latest(txn, from_u64(key[-8:]))
        if doc is not None and is_within(doc.source, place):
            numbers.add(doc.source_no)
    return numbers


def of_site_versions(txn: ReadTxn, versions: Collection[str]) -> set[SourceNo]:
    """Numbers of the active sources whose addresses name one of these versions of their site.

    The addresses of all pages are read, about 2 us each.
    """
    from kb.model.site_version import site_version

    wanted = {version.lower() for version in versions}
    numbers: set[SourceNo] = set()
    for start in _ADDRESSES:
        for key, _ in txn.scan("facets", start, prefix_stop(start)):
            address = text_of(key[len(_SOURCE) : -9])
            if address is not None and site_version(address) in wanted:
                numbers.add(SourceNo(from_u64(key[-8:])))
    hashed = _SOURCE + text_key("")[:1]
    for key, _ in txn.scan("facets", hashed, prefix_stop(hashed)):
        doc = latest(txn, from_u64(key[-8:]))
        if doc is not None and site_version(doc.source) in wanted:
            numbers.add(doc.source_no)
    return numbers


def is_of_kind(doc: Doc, kinds: Collection[str]) -> bool:
    """Whether a doc comes from a source of one of these kinds, or is a file of one."""
    return doc.kind in kinds or kind_of_source(doc.source) in kinds


def of_kinds(txn: ReadTxn, kinds: Collection[str]) -> set[SourceNo]:
    """Numbers of the active sources that `is_of_kind` lets through.

    For kinds of files the names of all sources are read, about 2 us each.
    """
    numbers = {no for kind in kinds for no in with_facet(txn, "kind", kind)}
    if not {*kinds} & {*get_args(FileKind)}:
        return numbers
    numbers |= {no for source, no in facet_values(txn, "source") if kind_of_source(source) in kinds}
    hashed = _SOURCE + text_key("")[:1]
    for key, _ in txn.scan("facets", hashed, prefix_stop(hashed)):
        doc = latest(txn, from_u64(key[-8:]))
        if doc is not None and kind_of_source(doc.source) in kinds:
            numbers.add(doc.source_no)
    return numbers


def is_dated(date: str | None, filters: Filters) -> bool:
    """Whether a doc's date is, or may be, between those of the filters.

    A date of a year or a month alone may be any day of it; a doc without a date has none of them.
    """
    if date is None:
        return False
    since, until = filters.since or "", filters.until or ""
    from_start = date[: len(since)] >= since[: len(date)]
    return from_start and (not until or date[: len(until)] <= until[: len(date)])


def parts_of(txn: ReadTxn, file: Lsid) -> Iterator[Doc]:
    """The active docs inside a file, such as the mails of a mailbox and their attachments."""
    numbers = with_facet(txn, "part_of", file)
    while batch := list(islice(numbers, _PARTS_AT_ONCE)):
        expect_latest(txn, batch)
        yield from filter(None, (latest(txn, number) for number in batch))


def with_person(txn: ReadTxn, name: str, wanted: str) -> set[SourceNo]:
    """Numbers of the active sources whose senders (`from`) or recipients (`to`) have this part.

    Costs one look-up for each person that there is.
    """
    numbers: set[SourceNo] = set()
    for value, source_no in _distinct(txn, name):
        if value is not None and is_person(value, wanted):
            numbers.update(with_facet(txn, name, value))
        elif value is None and (doc := latest(txn, source_no)) and doc.mail is not None:
            people = (doc.mail.sender,) if name == "from" else doc.mail.recipients
            numbers.update({source_no} if any(is_person(one, wanted) for one in people) else ())
    return numbers


def dated(txn: ReadTxn, filters: Filters) -> set[SourceNo]:
    """Numbers of the active sources whose date `is_dated` lets through."""
    head = b"date\0"
    start = head + (filters.since or "")[:_YEAR].encode()
    stop = prefix_stop(head + filters.until[:_YEAR].encode()) if filters.until else None
    return {
        SourceNo(from_u64(key[-8:]))
        for key, _ in txn.scan("facets", start, stop or prefix_stop(head))
        if is_dated(text_of(key[len(head) : -9]), filters)
    }


def with_tag(txn: ReadTxn, tag: str) -> set[SourceNo]:
    """Numbers of the active sources that have a tag, or one below it; case does not count.

    Costs one look-up for each tag that there is.
    """
    numbers = set(with_facet(txn, "tag", tag))
    for value, _ in _distinct(txn, "tag"):
        if value is not None and is_tag_within(value, tag):
            numbers.update(with_facet(txn, "tag", value))
    return numbers


def _distinct(txn: ReadTxn, name: str) -> Iterator[tuple[str | None, SourceNo]]:
    """Each value of a facet, or None for a hashed one, and the first source that has it."""
    head = name.encode("ascii") + b"\0"
    start, stop = head, prefix_stop(head)
    txn.expect_scan("facets", start, stop)
    last = next((key for key, _ in txn.scan("facets", start, stop, reverse=True)), None)
    while last is not None:
        key = next(key for key, _ in txn.scan("facets", start, stop))
        prefix = key[:-8]
        yield text_of(prefix[len(head) : -1]), SourceNo(from_u64(key[-8:]))
        if last.startswith(prefix):
            return
        start = prefix_stop(prefix) or prefix


def audiences(txn: ReadTxn) -> tuple[Audience, ...]:
    """Every audience of an active doc, sorted. Costs one look-up for each."""
    values: list[Audience] = []
    for value, source_no in _distinct(txn, "audience"):
        if value is not None:
            values.append(Audience(value))
        elif (doc := latest(txn, source_no)) is not None:
            values.append(doc.audience)
    return tuple(sorted(values))


def facet_keys(doc: Doc) -> list[bytes]:
    """Keys of a doc's facets; only active docs have facets."""
    if doc.status != "active":
        return []
    pairs = [("kind", doc.kind), ("audience", doc.audience), ("source", doc.source)]
    pairs += [("tag", tag) for tag in doc.tags]
    pairs += [("date", doc.day)] if doc.day else []
    pairs += [("pack", doc.pack.pack_id)] if doc.pack else []
    pairs += [("reference", target) for target in (doc.entry.references if doc.entry else ())]
    pairs += _mail_pairs(doc)
    pairs += link_facets(doc)
    return [facet_key(name, value, doc.source_no) for name, value in pairs]


def _mail_pairs(doc: Doc) -> list[tuple[str, str]]:
    file = file_of(doc.place)
    pairs = [("part_of", str(file))] if file else []
    if doc.mail is not None:
        pairs += [("from", doc.mail.sender.casefold())] if doc.mail.sender else []
        pairs += {("to", person.casefold()) for person in doc.mail.recipients}
    return pairs


def _put_facets(txn: WriteTxn, doc: Doc) -> None:
    for key in facet_keys(doc):
        txn.put("facets", key, b"")


def _drop_facets(txn: WriteTxn, doc: Doc) -> None:
    for key in facet_keys(doc):
        txn.delete("facets", key)


def resolve(txn: ReadTxn, short: str, scope: Scope) -> DocId | ChunkId:
    """The one doc or chunk id that starts with `short`, among those the scope may see.

    Raises NotFound if there is none, and AmbiguousId if there are several, or if `short` has fewer
    than 4 characters and is no full id.
    """
    table = {"d": "docs", "c": "chunk_ids"}.get(short[:1])
    if table is None or not short.isascii():
        raise NotFound(id=short)
    if txn.get(table, short.encode()) is not None and _may_know(txn, short, scope):
        return DocId(short)
    prefix = short.encode()
    matches: list[str] = []
    for key, _ in txn.scan(table, prefix, prefix_stop(prefix)):
        if not _may_know(txn, key.decode(), scope):
            continue
        matches.append(key.decode())
        if len(matches) > _CANDIDATES_SHOWN:
            break
    if not matches:
        raise NotFound(id=short)
    if len(matches) > 1 or len(short) < ID_PREFIX_MIN:
        several = AmbiguousId if len(matches) > 1 else ShortId
        raise several(id=short, candidates=", ".join(matches[:_CANDIDATES_SHOWN]))
    return DocId(matches[0])


def _may_know(txn: ReadTxn, ident: str, scope: Scope) -> bool:
    """Whether a scope sees the source of a doc or chunk, by its newest version."""
    if scope.operator:
        return True
    if ident.startswith("c"):
        ref = CHUNK_IDS.get(txn, ident.encode())
        chunk = CHUNKS.get(txn, u64(ref.no)) if ref else None
        newest = latest(txn, chunk.source_no) if chunk else None
    else:
        doc = get(txn, ident)
        newest = latest(txn, doc.source_no) if doc else None
    return newest is not None and newest.status == "active" and newest.visible_to(scope)


def resolve_doc(txn: ReadTxn, short: str, scope: Scope) -> DocId:
    """The one doc id that starts with `short`, among those the scope may see.

    Raises NotFound or AmbiguousId.
    """
    if not short.startswith("d"):
        raise NotFound(id=short)
    return DocId(resolve(txn, short, scope))
