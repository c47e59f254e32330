"""What is in a file as docs of their own: the attachments of a mail, the records of an export."""

import os
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct, structs

from kb.errors import EmptySource, SourceError
from kb.intake.canonicalize import CanonicalizeInput, Parser, fingerprint_of, reads_as_before
from kb.intake.ingest.changes import hide_missing
from kb.intake.ingest.ingest import Ingestor
from kb.intake.ingest.request import (
    FileStamp,
    IngestOutcome,
    IngestRequest,
    StagedDoc,
    part_of_mail,
)
from kb.intake.sync.pictures import Ocr, lacks_text, parsed
from kb.intake.sync.report import PartKind, Tally
from kb.model.doc import Doc
from kb.model.ids import Lsid, sha256_hex
from kb.model.source import part_lsid, part_source, whole_of
from kb.model.text import AttachedFile, Canonical
from kb.store import docs
from kb.store.keys import lsid_key
from kb.store.kv import WriteTxn
from kb.store.records import SEEN
from kb.store.store import Store

_DEPTH_MAX: Final = 3
_DIGEST_CHARS: Final = 8
_SUFFIX_CHARS_MAX: Final = 10
# Files that may hold records.
_EXPORTS: Final = frozenset(
    (
        *("application/json", "application/jsonl"),
        *("application/x-jex", "application/x-enex+xml"),
        *("text/x-bibtex", "application/x-research-info-systems"),
    )
)


class LeftPart(Struct, frozen=True, kw_only=True):
    """A part that cannot be taken in, and why."""

    kind: PartKind
    lsid: Lsid
    source: str
    outcome: Literal["skipped", "failed"]
    reason: str


class Attachments:
    """What is in the mails and exports that one call reads from files of their own."""

    def __init__(
        self, store: Store, ingestor: Ingestor, parser: Parser, ocr: Ocr, tally: Tally
    ) -> None:
        self._store = store
        self._ingestor = ingestor
        self._parser = parser
        self._ocr = ocr
        self._tally = tally
        self._kept: dict[Lsid, set[Lsid]] = {}

    def of(self, mail: IngestRequest) -> Iterator[IngestRequest]:
        """The parts of a mail or an export; the others are counted.

        Others are those that cannot be taken in, and records that are as they were.
        """
        if not _is_holder(mail):
            return
        kept = self._kept.setdefault(mail.lsid, set())
        mail = self._without_level(mail, kept)
        mail = structs.replace(mail, stamp=mail.stamp or self._known_stamp(mail.lsid))
        for part in attached(mail, self._parser, self._ocr, self._tally):
            kept.add(part.lsid)
            if isinstance(part, IngestRequest):
                yield part
            else:
                self._tally.part_left(part.kind, part.source, part.outcome, part.reason)

    def _without_level(self, export: IngestRequest, kept: set[Lsid]) -> IngestRequest:
        """An export without the records whose docs are level; all that they say is their bytes."""
        files = export.canonical.attachments
        records: dict[Lsid, AttachedFile] = {}
        for file in files:
            if file.key:
                records.setdefault(part_lsid(export.lsid, file.key), file)
        if not records:
            return export
        level: set[Lsid] = set()
        options, reads = structs.replace(export.ingest_options, title=None), reads_as_before()
        with self._store.read() as txn:
            for doc in docs.parts_of(txn, export.lsid):
                record = records.get(doc.place)
                if (
                    record is not None
                    and doc.source == part_source(export.source, record.key)
                    and self._ingestor.is_level(doc, sha256_hex(record.data), options, reads)
                ):
                    level.add(doc.place)
        self._tally.part("records", "unchanged", len(level))
        kept |= level
        left = [f for f in files if not f.key or part_lsid(export.lsid, f.key) not in level]
        canonical = structs.replace(export.canonical, attachments=tuple(left))
        return structs.replace(export, canonical=canonical)

    def _known_stamp(self, lsid: Lsid) -> FileStamp | None:
        with self._store.read() as txn:
            seen = SEEN.get(txn, lsid_key(lsid))
        if seen is None:
            return None
        return FileStamp(
            size_bytes=seen.size_bytes,
            mtime_ns=seen.mtime_ns,
            ctime_ns=seen.ctime_ns,
            inode=seen.inode,
            taken_ms=seen.seen_ms,
        )

    def hide_gone(self, txn: WriteTxn) -> None:
        """Hide what the mails that were read since the last time no longer have."""
        for file, kept in self._kept.items():
            gone = [doc for doc in docs.parts_of(txn, file) if doc.place not in kept]
            hidden = set(hide_missing(txn, self._store, [doc.doc_id for doc in gone]))
            for doc in gone:
                if doc.doc_id in hidden:
                    self._tally.part(_kind_at(doc.place), "removed")
        self._kept.clear()

    def foresee(self, part: IngestRequest) -> None:
        """Count what would become of a part."""
        with self._store.read() as txn:
            current = docs.latest_of(txn, part.lsid)
        kind = _kind_at(part.lsid)
        if current is None:
            self._tally.part(kind, "added")
        elif current.status == "tombstoned":
            self._tally.part(kind, "resurrected")
        elif current.raw_sha256 != part.raw_sha256:
            self._tally.part(kind, "updated")
        else:
            self._tally.part(kind, "unchanged")

    def took(self, part: StagedDoc, outcome: IngestOutcome | None) -> None:
        """Count a part that was committed; None for one that a person removed."""
        kind = _kind_at(part.request.lsid)
        if outcome is None:
            reason = "removed with kb rm; kb add brings it back"
            self._tally.part_left(kind, part.request.source, "skipped", reason)
        else:
            self._tally.part(kind, outcome.status)


def without_records(request: IngestRequest) -> IngestRequest:
    """An export whose records are docs of their own says no more than what is in none of them."""
    canonical = request.canonical
    count = sum(1 for file in canonical.attachments if file.key)
    if not count or not _is_holder(request):
        return request
    text = canonical.rest or f"{count:,} records, each a doc of its own"
    return structs.replace(
        request,
        canonical=structs.replace(canonical, markdown=f"{text}\n", by_name=not canonical.rest),
    )


def may_hold_parts(of: Canonical | Doc) -> bool:
    """Whether there may be docs in what is a file: in a mail, or in an export."""
    return of.mail is not None or of.mime in _EXPORTS


def _is_holder(request: IngestRequest) -> bool:
    lsid = request.lsid
    return may_hold_parts(request.canonical) and lsid.startswith("file://") and "#" not in lsid


def _kind_at(place: Lsid) -> PartKind:
    # A record has one name, an attachment two.
    return "records" if whole_of(place) is None else "attachments"


def attached(
    mail: IngestRequest, parser: Parser, ocr: Ocr, tally: Tally, depth: int = 1
) -> Iterator[IngestRequest | LeftPart]:
    """The parts of a mail or an export, those of mails among them included, down to three levels.

    An attachment has the mail's dates, people, tags and visibility, and a link to it.
    """
    seen: set[Lsid] = set()
    for file in mail.canonical.attachments:
        digest = sha256_hex(file.data)
        lsid, source = _place(mail, file, digest)
        if lsid in seen:
            continue
        seen.add(lsid)
        try:
            part = _request(mail, file, digest, lsid, source, parser, ocr, tally)
        except SourceError as error:
            kind: PartKind = "records" if file.key else "attachments"
            # A record without words is none.
            outcome: Literal["skipped", "failed"] = "failed"
            if file.key and isinstance(error, EmptySource):
                outcome = "skipped"
            yield LeftPart(
                kind=kind, lsid=lsid, source=source, outcome=outcome, reason=error.reason
            )
            continue
        yield part
        if depth < _DEPTH_MAX and not file.key:
            yield from attached(part, parser, ocr, tally, depth + 1)


def _place(mail: IngestRequest, file: AttachedFile, digest: str) -> tuple[Lsid, str]:
    """The lsid and the source: the mail's, and behind it the digest and the name, or the key."""
    if file.key:
        return part_lsid(mail.lsid, file.key), part_source(mail.source, file.key)
    names = (digest[:_DIGEST_CHARS], file.name)
    if "#" not in mail.lsid:
        return part_lsid(mail.lsid, *names), part_source(mail.source, *names)
    lsid, source = part_lsid(Lsid(""), *names)[1:], part_source("", *names)[1:]
    return Lsid(f"{mail.lsid}/{lsid}"), f"{mail.source}/{source}"


def _request(
    mail: IngestRequest,
    file: AttachedFile,
    digest: str,
    lsid: Lsid,
    source: str,
    parser: Parser,
    ocr: Ocr,
    tally: Tally,
) -> IngestRequest:
    read = parsed(
        parser, CanonicalizeInput(data=file.data, mime=file.mime, name=file.name), ocr, tally
    )
    canonical = read
    if not file.key:
        canonical = part_of_mail(read, mail.canonical.mail, mail.canonical.date)
    return structs.replace(
        mail,
        lsid=lsid,
        source=source,
        canonical=canonical,
        raw=file.data,
        raw_bytes=None,
        raw_sha256=digest,
        extension=_suffix(file.name),
        canonicalizer=fingerprint_of(file.mime),
        ingest_options=structs.replace(mail.ingest_options, title=None),
        read_after=None,
        wants_ocr=lacks_text(canonical) and ocr == "there",
    )


def _suffix(name: str) -> str:
    suffix = os.path.splitext(name)[1].lstrip(".").lower()
    return suffix if suffix.isalnum() and len(suffix) <= _SUFFIX_CHARS_MAX else "bin"
