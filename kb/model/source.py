"""How a source is named: one logical source id per file, however it was typed."""

import os
import urllib.parse
from pathlib import Path

from kb.model.doc import LOCAL_USER, Kind
from kb.model.ids import Lsid

STDIN_NAME = "-"


def file_lsid(path: Path) -> Lsid:
    """The file's URI; any byte that a name may hold survives in it."""
    return Lsid("file://" + urllib.parse.quote(os.fsencode(path)))


def path_of(lsid: Lsid) -> Path | None:
    """The file that an lsid names; None when it names no file."""
    name = name_of(lsid)
    return None if name is None else Path(name)


def name_of(lsid: Lsid) -> str | None:
    """As `path_of`, as text, which takes a tenth of the time: every hit asks for its file."""
    if not lsid.startswith("file://"):
        return None
    quoted = lsid.removeprefix("file://")
    # Most names have nothing to unquote.
    return os.fsdecode(urllib.parse.unquote_to_bytes(quoted)) if "%" in quoted else quoted


def display_name(path: Path) -> str:
    """The path for people and JSON: itself, or its URI where it is not valid UTF-8."""
    name = os.fspath(path)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return file_lsid(path)
    return name


def is_within(source: str, place: str) -> bool:
    """Whether a source is at a place or below it, as paths and addresses are."""
    return source == place or source.startswith(place.rstrip("/") + "/")


def place_of(source: str) -> str | None:
    """The folder of a file, the site of a page; None for what came by itself."""
    if source.startswith(("http://", "https://")):
        return "/".join(source.split("/", 3)[:3])
    folder = source.rpartition("/")[0]
    return folder if source.startswith("/") and folder else None


def member_lsid(kind: Kind, collection: str, path: str) -> Lsid:
    """A file as a topic or a pack names it, by its path there; with none, how all of them start."""
    return Lsid(f"{kind}:{_quoted(collection)}/{urllib.parse.quote(os.fsencode(path))}")


def entry_lsid(zettel_id: str) -> Lsid:
    """An entry by its id, wherever its file lies; with an empty one, how all of them start."""
    return Lsid(f"entry:{zettel_id}")


def owned_lsid(owner: str | None, lsid: str) -> Lsid:
    """A source as somebody names it from outside: one that everybody else's is apart from.

    The local user's own, and those that nobody is said to own, keep the name they have.
    """
    return Lsid(lsid if owner in (None, LOCAL_USER) else f"user:{_quoted(owner)}/{lsid}")


def member_of(lsid: Lsid) -> tuple[str, str]:
    """The collection and the path of a member's lsid."""
    collection, _, path = lsid.partition(":")[2].partition("/")
    return urllib.parse.unquote(collection), os.fsdecode(urllib.parse.unquote_to_bytes(path))


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
