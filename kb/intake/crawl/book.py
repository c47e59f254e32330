"""What is known of the pages of one source: kept in the store, written with the docs."""

from collections.abc import Callable, Iterator

from msgspec import structs

from kb.intake.ingest.changes import was_removed
from kb.model.doc import Doc
from kb.model.ids import Lsid
from kb.model.origin import Origin, origin_id
from kb.model.site import SitePage
from kb.model.source import owned_lsid
from kb.store import docs
from kb.store.keys import site_page_key, site_prefix
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import SITE_PAGES, SOURCES
from kb.store.store import Store


class PageBook:
    """The pages of one source, by address. What is put is written by the next `write`."""

    def __init__(self, store: Store, origin: Origin) -> None:
        """Load them all."""
        self._store = store
        self._origin = origin
        self._dirty: dict[str, None] = {}
        prefix = site_prefix(origin.origin_id)
        with store.read() as txn:
            self.pages = {page.url: page for _, page in SITE_PAGES.scan(txn, prefix)}

    def __iter__(self) -> Iterator[SitePage]:
        return iter(list(self.pages.values()))

    def __len__(self) -> int:
        return len(self.pages)

    def get(self, url: str) -> SitePage | None:
        """What is known of a page; None if nothing is."""
        return self.pages.get(url)

    def put(self, page: SitePage) -> None:
        """Replace what is known of a page."""
        self.pages[page.url] = page
        self._dirty[page.url] = None

    def drop(self, page: SitePage) -> None:
        """Forget a page."""
        self.pages.pop(page.url, None)
        self._dirty[page.url] = None

    @property
    def is_dirty(self) -> bool:
        """Whether something is not written yet."""
        return bool(self._dirty)

    def write(self, txn: WriteTxn) -> None:
        """Write what changed since the last `written`."""
        for url in self._dirty:
            page = self.pages.get(url)
            if page is None:
                SITE_PAGES.delete(txn, self._key(url))
            else:
                SITE_PAGES.put(txn, self._key(url), page)

    def written(self) -> None:
        """The transaction that wrote it has been committed."""
        self._dirty.clear()

    def commit(self, also: Callable[[WriteTxn], None] | None = None) -> None:
        """Write what changed in a transaction of its own, after `also`."""
        with self._store.write() as txn:
            if also is not None:
                also(txn)
            self.write(txn)
        self.written()

    def reread(self) -> None:
        """Have every page read anew, as what is looked for in them has changed."""
        for page in self:
            self.put(structs.replace(page, cursor="", raw_sha256="", lastmod=""))
        self.commit()

    def lsid(self, url: str) -> Lsid:
        """The logical source of a page."""
        return owned_lsid(self._origin.owner, f"url:{url}")

    def doc(self, txn: ReadTxn, page: SitePage) -> Doc | None:
        """The active doc that this source made of a page; None if there is none now."""
        if page.doc != "own":
            return None
        doc = docs.latest_of(txn, self.lsid(page.url))
        return doc if doc is not None and doc.status == "active" else None

    def was_removed(self, txn: ReadTxn, page: SitePage) -> bool:
        """Whether a person has removed the doc of a page, and nobody has added it since."""
        return page.doc != "dropped" and was_removed(txn, self.lsid(page.url))

    def vanished(self, txn: ReadTxn) -> list[tuple[SitePage, Doc]]:
        """The docs of pages that are no longer there, or no longer pages of their own.

        Not those of pages that are registered by themselves.
        """
        gone = []
        for page in self:
            if page.state in ("found", "taken"):
                continue
            doc = self.doc(txn, page)
            if doc is not None and not self._is_registered(txn, page.url):
                gone.append((page, doc))
        return gone

    def _is_registered(self, txn: ReadTxn, url: str) -> bool:
        ident = origin_id("url", url, self._origin.owner)
        return SOURCES.get(txn, ident.encode()) is not None

    def docs_count(self, txn: ReadTxn) -> int:
        """How many active docs this source has made."""
        return sum(self.doc(txn, page) is not None for page in self)

    def dropped(self, pages: list[SitePage]) -> None:
        """The docs of these pages have been removed, because their pages are not there."""
        for page in pages:
            self.put(structs.replace(page, doc="dropped"))

    def _key(self, url: str) -> bytes:
        return site_page_key(self._origin.origin_id, url)
