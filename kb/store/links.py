"""Links between docs: where a doc links to, and which docs link to it.

A doc keeps its links as its source writes them; where they lead is found out when it is asked, so
that a note may link to one that comes later, or moves. After Obsidian's rules
(https://help.obsidian.md/links), a link by name leads to the file with that name, in whatever
folder it lies.
"""

import posixpath
from itertools import islice
from typing import Final

from msgspec import Struct

from kb.model.doc import LOCAL_USER, Doc, Scope
from kb.model.ids import Lsid, SourceNo
from kb.model.source import file_of, owned_lsid
from kb.store import docs
from kb.store.keys import site_page_key, site_prefix
from kb.store.kv import ReadTxn
from kb.store.link_names import (
    ENDINGS,
    MAIL,
    PART,
    URL,
    folded,
    folded_names,
    link_keys,
    name_key,
    path_of_link,
    place_of_link,
    without_ending,
)
from kb.store.records import SITE_PAGES, SOURCES

_NAMESAKES_MAX: Final = 200
_REFERRERS_MAX: Final = 2_000
_LEADS_MAX: Final = 3
"""Over so many addresses a page may be reached."""


class DocLink(Struct, frozen=True, kw_only=True):
    """A link as it is written, and the doc that it leads to; None where there is none."""

    target: str
    doc: Doc | None


def links_of(txn: ReadTxn, doc: Doc, scope: Scope) -> list[DocLink]:
    """Where a doc links to, each doc once. A doc that the scope does not see is not there."""
    found: dict[str, DocLink] = {}
    for link in doc.links:
        written = link.partition(":")[2]
        target = target_of(txn, doc, link, scope)
        if target is None and link.startswith((PART, URL)):
            # Most pages of a site are not here, and nobody looks for them as for a lost note.
            continue
        found.setdefault(target.doc_id if target else written, DocLink(target=written, doc=target))
    return list(found.values())


def targets_of(txn: ReadTxn, doc: Doc, scope: Scope) -> list[Doc]:
    """The docs that a doc links to, each once."""
    return [link.doc for link in links_of(txn, doc, scope) if link.doc is not None]


def backlinks_of(txn: ReadTxn, doc: Doc, scope: Scope) -> list[Doc]:
    """The docs that link to a doc, by their sources, as far as the scope sees them."""
    keys = {without_ending(doc.place), doc.place, *map(name_key, folded_names(doc))}
    if doc.mail is not None and doc.mail.message_id:
        keys.add(MAIL + doc.mail.message_id)
    if doc.kind == "url":
        keys.update(_other_addresses(txn, doc))
    numbers: set[SourceNo] = set()
    for key in sorted(keys):
        numbers.update(docs.with_facet(txn, "link", key))
    referrers: list[Doc] = []
    for number in sorted(numbers)[:_REFERRERS_MAX]:
        referrer = docs.latest(txn, number)
        if referrer is None or number == doc.source_no or not referrer.visible_to(scope):
            continue
        near = (link for link in referrer.links if not keys.isdisjoint(link_keys(referrer, link)))
        targets = (target_of(txn, referrer, link, scope) for link in near)
        if any(target is not None and target.source_no == doc.source_no for target in targets):
            referrers.append(referrer)
    return sorted(referrers, key=lambda referrer: referrer.source)


def target_of(txn: ReadTxn, doc: Doc, link: str, scope: Scope) -> Doc | None:
    """The doc that a link of a doc leads to, among those that the scope sees."""
    if link.startswith(MAIL):
        return _mail(txn, doc, link.removeprefix(MAIL), scope)
    if place := place_of_link(doc, link):
        for ending in ("", *ENDINGS):
            target = docs.latest_of(txn, Lsid(place + ending))
            if target is not None and target.status == "active" and target.visible_to(scope):
                return target
    if link.startswith(URL):
        return _by_other_address(txn, doc, link.removeprefix(URL), scope)
    if link.startswith(PART):
        return None
    written = path_of_link(link)
    name = posixpath.basename(written)
    numbers = docs.with_facet(txn, "name", name)
    found = (docs.latest(txn, number) for number in islice(numbers, _NAMESAKES_MAX))
    namesakes = [
        target
        for target in found
        if target is not None and target.visible_to(scope) and _ends_with(target, written)
    ]
    return min(namesakes, key=lambda target: _distance(doc, target, name), default=None)


def _by_other_address(txn: ReadTxn, doc: Doc, url: str, scope: Scope) -> Doc | None:
    """The doc of the page that an address of a site leads to."""
    for origin in _sites(txn, doc):
        address = url
        for _ in range(_LEADS_MAX):
            page = SITE_PAGES.get(txn, site_page_key(origin, address))
            if page is None or not page.leads_to:
                break
            address = page.leads_to
            target = docs.latest_of(txn, owned_lsid(doc.owner, URL + address))
            if target is not None and target.status == "active" and target.visible_to(scope):
                return target
    return None


def _other_addresses(txn: ReadTxn, doc: Doc) -> set[Lsid]:
    """The places of the addresses that lead to a page; reads what is known of its site."""
    found: set[Lsid] = set()
    for origin in _sites(txn, doc):
        if SITE_PAGES.get(txn, site_page_key(origin, doc.source)) is None:
            continue
        leads = {
            page.url: page.leads_to
            for _, page in SITE_PAGES.scan(txn, site_prefix(origin))
            if page.leads_to
        }
        wanted = {doc.source}
        for _ in range(_LEADS_MAX):
            wanted |= {url for url, target in leads.items() if target in wanted}
        found |= {owned_lsid(doc.owner, URL + url) for url in wanted - {doc.source}}
    return found


def _sites(txn: ReadTxn, doc: Doc) -> list[str]:
    """The ids of the sites of a doc's owner."""
    return [
        origin.origin_id
        for _, origin in SOURCES.scan(txn)
        if origin.kind == "site" and (origin.owner or LOCAL_USER) == doc.owner
    ]


def _mail(txn: ReadTxn, doc: Doc, message_id: str, scope: Scope) -> Doc | None:
    """The mail of this id, in the doc's own mailbox if there are several."""
    numbers = docs.with_facet(txn, "mail", message_id)
    found = (docs.latest(txn, number) for number in islice(numbers, _NAMESAKES_MAX))
    mails = [mail for mail in found if mail is not None and mail.visible_to(scope)]
    own = file_of(doc.place)
    return min(mails, key=lambda mail: (file_of(mail.place) != own, mail.source), default=None)


def _ends_with(target: Doc, written: str) -> bool:
    """Whether the path of a doc ends with that of a link; a link without folders fits any path."""
    if "/" not in written:
        return True
    source = without_ending(target.source.casefold())
    return source == written or source.endswith("/" + written)


def _distance(doc: Doc, target: Doc, name: str) -> tuple[bool, bool, int, str]:
    """How far a namesake is: a file's own name before a title, the same folder, the top."""
    folder = posixpath.dirname(doc.source)
    own_name = folded(posixpath.basename(target.source))
    return (
        own_name != name,
        posixpath.dirname(target.source) != folder,
        target.source.count("/"),
        target.source,
    )
