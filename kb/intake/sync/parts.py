"""The attachments of a mail, as docs of their own that are taken in together with it."""

import os
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct, structs

from kb.errors import SourceError
from kb.intake.canonicalize import CanonicalizeInput, Parser, fingerprint_of
from kb.intake.ingest.changes import hide_missing
from kb.intake.ingest.request import (
    FileStamp,
    IngestOutcome,
    IngestRequest,
    StagedDoc,
    part_of_mail,
)
from kb.intake.sync.pictures import Ocr, lacks_text, parsed
from kb.intake.sync.report import Tally
from kb.model.ids import Lsid, sha256_hex
from kb.model.source import part_lsid, part_source
from kb.model.text import AttachedFile
from kb.store import docs
from kb.store.keys import lsid_key
from kb.store.kv import WriteTxn
from kb.store.records import SEEN
from kb.store.store import Store

_DEPTH_MAX: Final = 3
_DIGEST_CHARS: Final = 8
_SUFFIX_CHARS_MAX: Final = 10


class LeftPart(Struct, frozen=True, kw_only=True):
    """An attachment that cannot be taken in, and why."""

    lsid: Lsid
    source: str
    outcome: Literal["skipped", "failed"]
    reason: str


class Attachments:
    """The attachments of the mails that one call reads from files of their own."""

    def __init__(self, store: Store, parser: Parser, ocr: Ocr, tally: Tally) -> None:
        self._store = store
        self._parser = parser
        self._ocr = ocr
        self._tally = tally
        self._kept: dict[Lsid, set[Lsid]] = {}

    def of(self, mail: IngestRequest) -> Iterator[IngestRequest]:
        """The attachments of a mail; those that cannot be taken in are counted."""
        if mail.canonical.mail is None or not mail.lsid.startswith("file://"):
            return
        kept = self._kept.setdefault(mail.lsid, set())
        mail = structs.replace(mail, stamp=mail.stamp or self._known_stamp(mail.lsid))
        for part in attached(mail, self._parser, self._ocr, self._tally):
            kept.add(part.lsid)
            if isinstance(part, IngestRequest):
                yield part
            else:
                self._tally.part_left("attachments", part.source, part.outcome, part.reason)

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
            gone = [doc.doc_id for doc in docs.parts_of(txn, file) if doc.place not in kept]
            self._tally.part("attachments", "removed", len(hide_missing(txn, self._store, gone)))
        self._kept.clear()

    def foresee(self, part: IngestRequest) -> None:
        """Count what would become of an attachment."""
        with self._store.read() as txn:
            current = docs.latest_of(txn, part.lsid)
        if current is None:
            self._tally.part("attachments", "added")
        elif current.status == "tombstoned":
            self._tally.part("attachments", "resurrected")
        else:
            self._tally.part("attachments", "unchanged")

    def took(self, part: StagedDoc, outcome: IngestOutcome | None) -> None:
        """Count an attachment that was committed; None for one that a person removed."""
        if outcome is None:
            reason = "removed with kb rm; kb add brings it back"
            self._tally.part_left("attachments", part.request.source, "skipped", reason)
        else:
            self._tally.part("attachments", outcome.status)


def attached(
    mail: IngestRequest, parser: Parser, ocr: Ocr, tally: Tally, depth: int = 1
) -> Iterator[IngestRequest | LeftPart]:
    """The attachments of a mail, those of mails among them included, down to three levels.

    Each has the mail's dates, people, tags and visibility, and a link to it.
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
            yield LeftPart(lsid=lsid, source=source, outcome="failed", reason=error.reason)
            continue
        yield part
        if depth < _DEPTH_MAX:
            yield from attached(part, parser, ocr, tally, depth + 1)


def _place(mail: IngestRequest, file: AttachedFile, digest: str) -> tuple[Lsid, str]:
    """The lsid and the source: the mail's, and behind it the digest and the name."""
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
