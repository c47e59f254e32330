"""Takes a mailbox in, mail by mail: each is a doc of its own, and so are its attachments."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, Protocol

from msgspec import Struct, structs

from kb.errors import EmptySource, SourceError
from kb.intake.canonicalize import CanonicalizeInput, Parser, fingerprint_of, reads_as_before
from kb.intake.canonicalize.mbox import MailBytes, mails_of
from kb.intake.ingest.changes import hide_missing, release_hold, was_removed
from kb.intake.ingest.ingest import Ingestor, same_stamp, seen_record
from kb.intake.ingest.request import IngestOptions, IngestRequest, StagedDoc
from kb.intake.sync.folder import hold_back_reason
from kb.intake.sync.parts import LeftPart, attached
from kb.intake.sync.pictures import Ocr
from kb.intake.sync.read import opened, stamp_of
from kb.intake.sync.report import Outcome, PartKind, Tally
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.ids import DocId, Lsid, sha256_hex
from kb.model.source import file_lsid, file_of, part_lsid, part_source, whole_of
from kb.store import docs
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn
from kb.store.records import SEEN
from kb.store.store import Store

_MIME: Final = "message/rfc822"
_NAME: Final = "mail without a subject.eml"
_BATCH_DOCS: Final = 128
_BATCH_BYTES: Final = 16 << 20
_KEY_CHARS_MAX: Final = 250
_KEPT_OUT: Final = "removed with kb rm; kb add brings it back"


class MailboxOptions(Protocol):
    """What a call says of its sources."""

    @property
    def ingest_options(self) -> IngestOptions:
        """What it sets for each doc."""
        ...

    @property
    def dry_run(self) -> bool:
        """Whether nothing is written."""
        ...

    @property
    def file_bytes_max(self) -> int:
        """What a single mail may have."""
        ...

    @property
    def ocr(self) -> Ocr:
        """What becomes of pages that are pictures."""
        ...

    @property
    def revive(self) -> bool:
        """Whether docs that a person removed come back."""
        ...

    @property
    def accept_deletions(self) -> bool:
        """Whether docs go however many mails are gone."""
        ...


class _Staged(Struct, frozen=True, kw_only=True):
    kind: PartKind
    doc: StagedDoc


class MailboxTaker:
    """Takes one mailbox into one home; holds one mail and about 200 bytes for each other."""

    def __init__(
        self,
        store: Store,
        ingestor: Ingestor,
        parser: Parser,
        options: MailboxOptions,
        tally: Tally,
    ) -> None:
        self._store = store
        self._ingestor = ingestor
        self._parser = parser
        self._options = options
        self._ingest_options = structs.replace(options.ingest_options, title=None)
        self._tally = tally
        self._batch: list[_Staged] = []
        self._mails: dict[bytes, bytes] = {}
        """By the digest of its lsid: the digest of each mail that was met."""
        self._parsed: set[bytes] = set()
        self._attached: set[bytes] = set()
        self._lacking: set[bytes] = set()
        """The mails with an attachment that a person removed, if such come back now."""
        self._changes = 0
        self._left_out = 0
        self._left_out_before = 0

    def take(self, path: Path, name: str, *, listed: bool) -> None:
        """Bring the docs of a mailbox level with it; its stamp tells when nothing has changed.

        What is committed stays if this is interrupted; the next call goes on behind it. Raises a
        SourceError if the file cannot be read to its end; then no doc is removed.
        """
        self._file, self._name = file_lsid(path, self._store.machine), name
        if self._is_unchanged(path):
            self._tally.took(name, DocId(""), "unchanged")
            return
        with self._store.read() as txn:
            if not self._options.revive and was_removed(txn, self._file):
                self._tally.left(name, "skipped", _KEPT_OUT)
                return
            known_count = sum(1 for _ in docs.with_facet(txn, "part_of", self._file))
            self._note_removed(txn)
        with opened(path, listed=listed) as file:
            self._stamp = stamp_of(file.before, self._store.clock.file_ms())
            if not file.before.st_size and not known_count:
                self._tally.left(name, "skipped", "it is empty")
                return
            if file.before.st_size:
                self._take_all(file.blocks())
        self._remove(known_count)
        status: Outcome = (
            "added" if not known_count else "updated" if self._changes else "unchanged"
        )
        self._tally.took(name, DocId(""), status)

    def _is_unchanged(self, path: Path) -> bool:
        try:
            stamp = stamp_of(path.stat(), self._store.clock.file_ms())
        except OSError:
            return False
        with self._store.read() as txn:
            seen = SEEN.get(txn, lsid_key(part_lsid(self._file)))
        if seen is None or not same_stamp(seen, stamp):
            return False
        if seen.left_out and self._options.revive:
            return False
        return seen.raw_sha256 == _digest_of(self._ingest_options) or _says_nothing(
            self._ingest_options
        )

    def _note_removed(self, txn: ReadTxn) -> None:
        seen = SEEN.get(txn, lsid_key(part_lsid(self._file)))
        if seen is None or not seen.left_out:
            return
        if not self._options.revive:
            self._left_out_before = seen.left_out
            return
        for doc in docs.all_latest(txn):
            if doc.status == "tombstoned" and file_of(doc.place) == self._file:
                self._lacking.add(_digest(self._mail_of(doc)))

    def _mail_of(self, doc: Doc) -> Lsid:
        # In a place, the slashes of a Message-ID are quoted.
        name = doc.place.partition("#")[2].partition("/")[0]
        return Lsid(f"{self._file}#{name}")

    def _take_all(self, blocks: Iterator[bytes]) -> None:
        limit = self._options.file_bytes_max
        try:
            for mail in mails_of(blocks, limit, self._name):
                self._take_mail(mail)
        finally:
            # After Ctrl-C, too: staged docs are complete, so keep them.
            self._flush()

    def _take_mail(self, mail: MailBytes) -> None:
        sha256 = sha256_hex(mail.data)
        key, lsid = self._key(mail, sha256)
        if key is None:
            self._tally.part("mails", "unchanged")
            return
        source = part_source(self._name, key)
        if mail.is_over:
            limit = self._options.file_bytes_max
            detail = f"{mail.size_bytes:,} bytes, over the limit of {limit:,}"
            detail += "; raise ingest.file_bytes_max to add it"
            self._left(source, "skipped", detail)
            return
        with self._store.read() as txn:
            if not self._options.revive and was_removed(txn, lsid):
                self._left(source, "skipped", _KEPT_OUT)
                return
            same = self._ingestor.same_bytes(
                txn, lsid, sha256, self._ingest_options, reads_as_before()
            )
        lacks_attachment = _digest(lsid) in self._lacking
        if same is not None and same.source == source and not lacks_attachment:
            self._tally.part("mails", "unchanged")
            return
        self._parse(mail, lsid, source, sha256)

    def _key(self, mail: MailBytes, sha256: str) -> tuple[str | None, Lsid]:
        """The name of a mail in its mailbox: its Message-ID, if another mail has not got it.

        None for a mail that is there a second time, byte for byte.
        """
        own = bytes.fromhex(sha256[:16])
        by_bytes = f"sha256-{sha256[:32]}"
        message_id = mail.message_id
        keys = [message_id] if 0 < len(message_id) <= _KEY_CHARS_MAX else []
        for key in (*keys, by_bytes):
            lsid = part_lsid(self._file, key)
            other = self._mails.get(_digest(lsid))
            if other is None:
                self._mails[_digest(lsid)] = own
                return key, lsid
            if other == own:
                break
        return None, lsid

    def _parse(self, mail: MailBytes, lsid: Lsid, source: str, sha256: str) -> None:
        options = self._options
        try:
            canonical = self._parser.parse(
                CanonicalizeInput(data=mail.data, mime=_MIME, name=_NAME)
            )
        except SourceError as error:
            outcome: Literal["skipped", "failed"] = "failed"
            if isinstance(error, EmptySource):
                outcome = "skipped"
            self._left(source, outcome, error.reason)
            return
        for warning in canonical.warnings:
            self._tally.note(source, "added", warning)
        request = IngestRequest(
            lsid=lsid,
            source=source,
            kind="file",
            canonical=canonical,
            raw=mail.data,
            raw_sha256=sha256,
            extension="eml",
            canonicalizer=fingerprint_of(_MIME),
            ingest_options=self._ingest_options,
            stamp=self._stamp,
            revive=options.revive,
        )
        self._parsed.add(_digest(lsid))
        requests = [request]
        for part in attached(request, self._parser, options.ocr, self._tally):
            self._attached.add(_digest(part.lsid))
            if isinstance(part, LeftPart):
                self._tally.part_left(part.kind, part.source, part.outcome, part.reason)
            else:
                requests.append(part)
        self._put(requests)

    def _left(
        self,
        source: str,
        outcome: Literal["skipped", "failed"],
        reason: str,
        kind: PartKind = "mails",
    ) -> None:
        self._left_out += 1
        self._tally.part_left(kind, source, outcome, reason)

    def _put(self, requests: list[IngestRequest]) -> None:
        """Stage a mail with its attachments; they are committed together."""
        kind: PartKind = "mails"
        for request in requests:
            if self._options.dry_run:
                self._foresee(kind, request)
            else:
                self._batch.append(_Staged(kind=kind, doc=self._ingestor.stage(request)))
            kind = "attachments"
        raw_bytes = sum(len(staged.doc.request.raw) for staged in self._batch)
        if len(self._batch) >= _BATCH_DOCS or raw_bytes >= _BATCH_BYTES:
            self._flush()

    def _foresee(self, kind: PartKind, request: IngestRequest) -> None:
        with self._store.read() as txn:
            current = docs.latest_of(txn, request.lsid)
        self._changes += 1
        if current is None:
            self._tally.part(kind, "added")
        elif current.status == "tombstoned" and current.raw_sha256 == request.raw_sha256:
            self._tally.part(kind, "resurrected")
        else:
            self._tally.part(kind, "updated")

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if not batch:
            return
        outcomes = self._ingestor.commit([staged.doc for staged in batch])
        for staged, outcome in zip(batch, outcomes, strict=True):
            if outcome is None:
                # Only what a person removed is not taken in here.
                self._left(staged.doc.request.source, "skipped", _KEPT_OUT, staged.kind)
            else:
                self._changes += outcome.status != "unchanged"
                self._tally.part(staged.kind, outcome.status)

    def _remove(self, known_count: int) -> None:
        """Remove docs of mails that are gone, unless there are suspiciously many; keep the stamp.

        A mailbox that was one doc for an earlier kb is removed as such.
        """
        with self._store.read() as txn:
            vanished = [doc for doc in docs.parts_of(txn, self._file) if not self._is_there(doc)]
            former = docs.latest_of(txn, self._file)
        reason = hold_back_reason(None, len(self._mails), len(vanished), known_count)
        if reason and not self._options.accept_deletions:
            self._tally.hold_back(self._name, reason)
            return
        for doc in vanished:
            is_mail = whole_of(doc.place) is None
            self._tally.part("mails" if is_mail else "attachments", "removed")
        self._changes += len(vanished)
        if self._options.dry_run:
            return
        gone = [*vanished, *([former] if former is not None else [])]
        sha256 = _digest_of(self._ingest_options)
        seen = seen_record(part_lsid(self._file), DocId(""), sha256, self._stamp)
        failpoint("sync.before_remove")
        with self._store.write() as txn:
            hide_missing(txn, self._store, [doc.doc_id for doc in gone])
            # What an earlier kb knew of the file as one doc.
            SEEN.delete(txn, lsid_key(self._file))
            release_hold(txn, self._file)
            left_out = max(self._left_out, self._left_out_before)
            SEEN.put(txn, lsid_key(seen.lsid), structs.replace(seen, left_out=left_out))

    def _is_there(self, doc: Doc) -> bool:
        """Whether the mailbox still has a mail, or the mail an attachment."""
        mail = _digest(self._mail_of(doc))
        if mail not in self._mails:
            return False
        is_mail = whole_of(doc.place) is None
        return is_mail or mail not in self._parsed or _digest(doc.place) in self._attached


def _digest(lsid: Lsid) -> bytes:
    return hashlib.blake2b(os.fsencode(lsid), digest_size=8).digest()


def _says_nothing(options: IngestOptions) -> bool:
    return _digest_of(options) == _digest_of(IngestOptions())


def _digest_of(options: IngestOptions) -> str:
    """What a call says of its docs; another saying makes kb look at each again."""
    said = (options.tags, options.visibility, options.owner)
    return sha256_hex(repr(said).encode())
