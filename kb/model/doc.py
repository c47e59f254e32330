"""Docs: one canonicalised item at one version, and who may see it."""

from typing import Literal, NewType, assert_never

from msgspec import Struct

from kb.model.code import Definition
from kb.model.entry import EntryMeta
from kb.model.ids import DocId, Lsid, SourceNo
from kb.model.mail import MailHead
from kb.model.sheet import SheetRows

Visibility = Literal["public", "shared", "private"]
VISIBILITIES: tuple[Visibility, ...] = ("public", "shared", "private")
DocStatus = Literal["active", "superseded", "tombstoned"]
Kind = Literal["file", "stdin", "url", "folder", "pack", "registry", "notebook", "topic", "entry"]

LOCAL_USER = "local"

Audience = NewType("Audience", str)
"""All docs of one audience are seen by the same scopes: `public`, `shared`, `private:<owner>`."""
_PUBLIC = Audience("public")
_SHARED = Audience("shared")


class Scope(Struct, frozen=True, kw_only=True):
    """Who is asking. The runtime makes it; nothing that an agent sends can carry one."""

    user: str | None
    """The name that owns private docs; None is an anonymous caller."""
    operator: bool = False
    """True for the person at the machine, who holds the files anyway."""

    @property
    def own_name(self) -> str | None:
        """Whose docs are that it adds; None for the operator's, which are the local user's."""
        return None if self.operator else self.user

    def within(self, caller: "Scope") -> "Scope":
        """Who this is in a home whose caller is that: the person at the machine is its caller."""
        return caller if self.operator else self

    def reads(self, audience: Audience) -> bool:
        """Whether this scope sees the docs of an audience: what `Doc.visible_to` says of each."""
        if self.operator or audience == _PUBLIC:
            return True
        return self.user is not None and audience in (_SHARED, _private(self.user))


def _private(owner: str) -> Audience:
    return Audience(f"private:{owner}")


def audience_of(visibility: Visibility, owner: str) -> Audience:
    """The audience of a visibility and an owner, as one word."""
    match visibility:
        case "public":
            return _PUBLIC
        case "shared":
            return _SHARED
        case "private":
            return _private(owner)
        case _:
            assert_never(visibility)


def is_tag_within(tag: str, wanted: str) -> bool:
    """Whether a tag is the wanted one or below it, as `a/b` is below `a`; case does not count."""
    folded, above = tag.casefold(), wanted.lstrip("#").strip("/").casefold()
    return folded == above or folded.startswith(above + "/")


OPERATOR = Scope(user=LOCAL_USER, operator=True)


class Coverage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of a paged source had text: pages in all, and pages with text."""

    pages: int
    pages_with_text: int
    ocr: str = ""
    """What looked at the pages without text, such as `tesseract:eng`; empty if nothing did."""
    ocr_pages: tuple[int, ...] = ()
    """The pages, from 1 on, whose text it recognised in pictures."""

    @property
    def lacks_text(self) -> bool:
        """Whether a page has no text that could be found."""
        return self.pages_with_text < self.pages


class PackPart(Struct, frozen=True, kw_only=True):
    """Which doc of which pack it is."""

    pack_id: str
    selector: str
    """Its name in that pack."""


class Doc(Struct, frozen=True, kw_only=True):
    """One version of one logical source."""

    doc_id: DocId
    lsid: Lsid
    source_no: SourceNo
    version: int
    """From 1, without gaps, per lsid."""
    title: str
    source: str
    """Where it came from, as a person names it: an absolute path, a URL, `-`."""
    kind: Kind
    mime: str
    tags: tuple[str, ...]
    date: str | None
    """The date that the source gives itself, or its file's name does; ISO 8601."""
    visibility: Visibility
    owner: str
    status: DocStatus
    raw_sha256: str
    raw_path: str
    """Relative to the home, as is md_path; empty where no copy of the bytes is kept."""
    md_path: str
    md_sha256: str
    raw_bytes: int
    md_chars: int
    coverage: Coverage | None
    canonicalizer: str
    """Fingerprint of the canonicaliser that made the markdown."""
    added_ms: int
    updated_ms: int
    front_lines: int = 0
    """How many lines of the source come before the markdown: its front matter."""
    tags_given: tuple[str, ...] = ()
    """The tags that the caller gave, besides those in the source."""
    title_given: str | None = None
    """The title that the caller gave; reading the source again keeps it."""
    moved_to: Lsid | None = None
    """The place of its source after a move. `lsid` stays, because it is the same source."""
    charset: str | None = None
    """The encoding that the server declared; without it the bytes may decode differently."""
    entry: EntryMeta | None = None
    """Its metadata as an entry; None if it is not one."""
    pack: PackPart | None = None
    """None if it belongs to no pack."""
    aliases: tuple[str, ...] = ()
    """Other names that the source gives itself."""
    links: tuple[str, ...] = ()
    """Where it links to: `wiki:NAME`, `path:PATH` from its own folder, `mail:MESSAGE-ID`,
    `url:ADDRESS` of a page of the same site, or `part:` for the doc that it is a part of; see
    kb/store/links.py."""
    created: str | None = None
    """When the source was created, as it says itself; ISO 8601, as is `modified`."""
    modified: str | None = None
    """When the source was last changed: as it says itself, else as its file or server says."""
    has_names: bool = False
    """Whether links to its names are looked up; of docs that an older kb read they are not."""
    by_name: bool = False
    """Whether its text says no more than what the file is: words of its name find it, and no
    vector is made of it."""
    mail: MailHead | None = None
    """Of a mail or an attachment: who wrote it to whom."""
    sheet_rows: tuple[SheetRows, ...] = ()
    """Of a workbook: which rows of which sheet the lines of its markdown hold."""
    definitions: tuple[Definition, ...] = ()
    """Of source code that a grammar read: where its definitions are, in the order of the names."""
    hidden_run: int = 0
    """For a tombstone: how many compactions had finished when the doc was hidden."""

    @property
    def label(self) -> str:
        """The title under which its chunks are hashed, embedded and indexed."""
        return f"[{self.entry.zettel_id}] {self.title}" if self.entry else self.title

    @property
    def day(self) -> str | None:
        """The date that it is found and sorted by: its own, else when it was last changed."""
        return self.date or self.modified

    @property
    def place(self) -> Lsid:
        """The lsid of the place where its source is now."""
        return self.moved_to or self.lsid

    @property
    def is_private(self) -> bool:
        """Whether only its owner may see it; nothing that is passed on may contain it unasked."""
        return self.visibility == "private"

    @property
    def audience(self) -> Audience:
        """Who may see it, as one word; a scope that reads this audience reads the doc."""
        return audience_of(self.visibility, self.owner)

    def visible_to(self, scope: Scope) -> bool:
        """Whether this scope may know that the doc exists; the only check.

        Everybody may see public docs, named users shared ones, and only their owner private ones.
        """
        if scope.operator or self.visibility == "public":
            return True
        if scope.user is None:
            return False
        return self.visibility == "shared" or self.owner == scope.user


class VersionPointer(Struct, frozen=True, kw_only=True):
    """The newest doc of a logical source."""

    doc_id: DocId
    version: int
    source_no: SourceNo


class SourceStamp(Struct, frozen=True, kw_only=True):
    """The hash and file status of a source when last ingested, to skip an unchanged file unread."""

    lsid: Lsid
    doc_id: DocId
    raw_sha256: str
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    seen_ms: int
    left_out: int = 0
    """Of a mailbox: how many docs it lacks at most, as a person removed them, or they failed."""


LedgerState = Literal["pending", "indexing_complete", "cleanup_pending", "done"]


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """The progress of a doc's ingest, and the files that it needs until it is done."""

    doc_id: DocId
    state: LedgerState
    new_paths: tuple[str, ...]
    updated_ms: int
