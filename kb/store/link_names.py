"""What links are looked up by: names and places, as both ends of a link have them. Pure."""

import os
import posixpath
import urllib.parse
from collections.abc import Iterator
from typing import Final

from kb.model.doc import Doc
from kb.model.source import (
    file_lsid,
    is_repository,
    machine_of,
    names_of,
    owned_lsid,
    repository_source,
    whole_of,
)

WIKI: Final = "wiki:"
PATH: Final = "path:"
MAIL: Final = "mail:"
PART: Final = "part:"
URL: Final = "url:"
ENDINGS: Final = (".md", ".markdown")


def link_facets(doc: Doc) -> Iterator[tuple[str, str]]:
    """The facets by which links are found from both of their ends."""
    if doc.links:
        keys = {key for link in doc.links for key in link_keys(doc, link)}
        yield from (("link", key) for key in keys)
    if doc.mail is not None and doc.mail.message_id:
        yield ("mail", doc.mail.message_id)
    if doc.has_names:
        yield from (("name", name) for name in folded_names(doc))


def link_keys(doc: Doc, link: str) -> set[str]:
    """What a link may mean: the place of its target, with or without an ending, and a name."""
    if link.startswith(MAIL):
        return {link}
    if link.startswith((PART, URL)):
        return {place} if (place := place_of_link(doc, link)) else set()
    keys = {name_key(posixpath.basename(path_of_link(link)))}
    if place := place_of_link(doc, link):
        keys.add(place)
    return keys


def name_key(name: str) -> str:
    """The key of a link by name."""
    return f"name:{name}"


def folded_names(doc: Doc) -> set[str]:
    """The names that links may call a doc by, folded."""
    return {folded(name) for name in names_of(doc) if name.strip()}


def folded(name: str) -> str:
    """A name without case and without the ending of markdown."""
    return without_ending(name.strip().casefold())


def without_ending(name: str) -> str:
    """A name or place without the ending of markdown."""
    return next((name.removesuffix(end) for end in ENDINGS if name.endswith(end)), name)


def path_of_link(link: str) -> str:
    """The name or path of a link, folded, without leading dots."""
    path = posixpath.normpath(folded(link.partition(":")[2]).lstrip("/"))
    return path.removeprefix("../") if not path.startswith("../../") else posixpath.basename(path)


def place_of_link(doc: Doc, link: str) -> str:
    """The lsid that a path from a doc's own folder or page names, or that of what it is a part of.

    Empty for names, and for other docs.
    """
    if link.startswith(PART):
        return whole_of(doc.place) or ""
    if link.startswith(URL):
        return owned_lsid(doc.owner, link)
    if not link.startswith(PATH):
        return ""
    if is_repository(doc.source):
        return _in_repository(doc, link.removeprefix(PATH))
    if doc.kind == "url":
        return _on_site(doc, link.removeprefix(PATH))
    if not doc.place.startswith("file://"):
        return ""
    machine = machine_of(doc.place)
    place = doc.place.removeprefix(f"file://{machine}")
    folder = os.fsdecode(urllib.parse.unquote_to_bytes(place))
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(folder), link.removeprefix(PATH)))
    return file_lsid(joined, machine)


def _on_site(doc: Doc, path: str) -> str:
    """The lsid of the page that a path on a markdown page leads to."""
    quoted = urllib.parse.quote(path, safe="/:!$&'()*+,;=@~", errors="replace")
    return owned_lsid(doc.owner, URL + urllib.parse.urljoin(doc.source, quoted))


def _in_repository(doc: Doc, path: str) -> str:
    """The lsid of a file that a path from a file of the same repository names."""
    location, _, own = doc.place.partition("#")
    folder = posixpath.dirname(urllib.parse.unquote(own, errors="surrogateescape"))
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "" if joined.startswith("..") else repository_source(location, joined)
