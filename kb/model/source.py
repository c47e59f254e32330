"""Logical source ids (lsids), and how sources are shown to people."""

import os
import re
import urllib.parse
from pathlib import Path
from typing import Final

from kb.model.doc import LOCAL_USER, Doc, Kind
from kb.model.file_kinds import FileKind, file_kind, is_named
from kb.model.ids import Lsid

STDIN_NAME = "-"
_ENDING_CHARS_MAX = 10
# A file with docs in it; what stands behind its `#` names one of them.
_HOLDER: Final = (
    r"(?:\.(?:mbox|emlx?|msg|jsonl?|ndjson|jex|enex)|/mbox|/(?:cur|new)/\d{6,}[._][^/#]+"
    r"|/(?:Mail|ImapMail|Local Folders)/(?:[^/#]+/){0,32}[^/.#]+)"
)
# A mail in a folder of mails, one file each: named after the second it came in, without an ending.
_MAILDIR: Final = r".*/(?:cur|new)/\d{6,}[._][^/]+"
_HOLDS_PARTS: Final = rf"(?i:{_HOLDER})\Z"
_PART: Final = rf"(?is)(.*?{_HOLDER})#(.*)"
_MAIL_INDEX: Final = ".msf"
_REPOSITORY: Final = "git+"
_MACHINE: Final = r"(?:[A-Za-z0-9_.~%-]+@)?[a-z0-9][a-z0-9.-]*"
_PLAIN_PATH: Final = r"[A-Za-z0-9_.~/-]*"
_ESCAPED: Final = r"[\x00-\x20%/\x7f-\xa0\u2028\u2029\ud800-\udfff]"


def ending_of(name: str) -> str:
    """The ending of a file's name in lower case, without its dot; of a path, too."""
    stem, _, ending = name[name.rfind("/") + 1 :].rpartition(".")
    # A dot that a name begins with begins no ending.
    return ending.lower() if stem.strip(".") else ""


def is_named_in_maildir(path: str) -> bool:
    """Whether a file's path is that of a mail in a Maildir."""
    return ("/cur/" in path or "/new/" in path) and re.fullmatch(_MAILDIR, path) is not None


def is_indexed_mailbox(path: str) -> bool:
    """Whether a file without an ending is a mailbox of Thunderbird, which keeps an index of it."""
    return not ending_of(path) and os.path.lexists(path + _MAIL_INDEX)


def file_lsid(path: str | Path, machine: str = "") -> Lsid:
    """The file's URI, percent-encoded, so that any byte of a file name is kept.

    On a home that machines share, the URI names the machine that has the file.
    """
    name = os.fspath(path)
    # Most names have nothing to quote, and it is called for every file of a folder.
    if re.fullmatch(_PLAIN_PATH, name) is None:
        name = urllib.parse.quote(os.fsencode(name))
    return Lsid(f"file://{machine}{name}")


def path_of(lsid: Lsid, machine: str = "") -> Path | None:
    """The path of the file that an lsid names, or that holds it; None if it names no file.

    On a home that machines share, only files of `machine` have a path.
    """
    name = name_of(lsid, machine)
    return None if name is None else Path(name)


def name_of(lsid: Lsid, machine: str = "") -> str | None:
    """As `path_of`, but a string, which is ten times faster: it is called for every hit."""
    start = f"file://{machine}/"
    if not lsid.startswith(start):
        return None
    quoted = lsid[len(start) - 1 :].partition("#")[0]
    # Most names have nothing to unquote.
    return os.fsdecode(urllib.parse.unquote_to_bytes(quoted)) if "%" in quoted else quoted


def files_of(user: str, machine: str) -> str:
    """What stands for a machine in the places of files that one of several users there added.

    So each user of a home that machines share has docs of their own, also of one file.
    """
    return f"{_quoted(user)}@{machine}"


def machine_of(lsid: Lsid) -> str:
    """The machine that a file's lsid names; empty where it names none, and for other lsids."""
    return lsid[len("file://") :].partition("/")[0] if lsid.startswith("file://") else ""


def on_machine(name: str, machine: str) -> str:
    """A path, or another name that a machine gives, as it is called on a home that machines share.

    Without a machine, which is so for homes in folders, the name stays.
    """
    return f"{machine}:{name}" if machine else name


def from_machine(name: str, machine: str) -> str | None:
    """The name that a machine gave, from what `on_machine` made; None if it is another one's."""
    if not machine:
        return name
    start = f"{machine}:"
    return name[len(start) :] if name.startswith(start) else None


def place_on(place: str, machine: str) -> str:
    """A place that is named on a machine, as docs of a home that machines share call it."""
    return on_machine(place, machine) if place.startswith("/") else place


def names_machine(place: str) -> bool:
    """Whether a place begins with a machine, as `display_name` writes it."""
    return _without_machine(place) != place


def file_of_source(source: str, machine: str) -> Path | None:
    """The path of the file that a doc's source names; None if another machine has it."""
    if source.startswith("file://"):
        return path_of(Lsid(source), machine)
    name = from_machine(source, machine)
    return None if name is None else Path(name)


def part_lsid(file: Lsid, *names: str) -> Lsid:
    """The lsid of a doc inside a file, such as a mail; without names, of all that it holds."""
    quoted = (urllib.parse.quote(name, safe="", errors="surrogatepass") for name in names)
    return Lsid(f"{file}#{'/'.join(quoted)}")


def part_source(file: str, *names: str) -> str:
    """The source of a doc inside a file, as a person names it."""
    shown = (
        re.sub(_ESCAPED, lambda char: urllib.parse.quote(char[0], errors="replace", safe=""), name)
        for name in names
    )
    return f"{file}#{'/'.join(shown)}"


def source_of(place: Lsid, machine: str = "") -> str:
    """The source of the doc at a file's place, or at that of something in a file."""
    path = path_of(place, machine)
    if path is None:
        return place
    _, mark, names = place.partition("#")
    if not mark:
        return display_name(path, machine)
    return part_source(display_name(path, machine), *map(urllib.parse.unquote, names.split("/")))


def file_of(place: Lsid) -> Lsid | None:
    """The lsid of the file that holds a doc; None for a doc that is no part of a file."""
    file, mark, _ = place.partition("#")
    return Lsid(file) if mark and file.startswith("file://") else None


def whole_of(place: Lsid) -> Lsid | None:
    """The lsid of what a doc is a part of: of an attachment its mail; None if it is no part.

    A mail is no part of its mailbox, which is no doc. An attachment's own place ends in two names,
    its digest and its name.
    """
    file = file_of(place)
    if file is None:
        return None
    names = place.partition("#")[2].split("/")
    whole = "/".join(names[:-2])
    return Lsid(f"{file}#{whole}") if whole else file if len(names) > 1 else None


def display_name(path: str | Path, machine: str = "") -> str:
    """The path for people and JSON; its URI if it is not valid UTF-8.

    With a machine it is what docs of a home that machines share are called, `machine:/path`.
    """
    name = os.fspath(path)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return file_lsid(path, machine)
    return on_machine(name, machine)


def is_within(source: str, place: str) -> bool:
    """Whether a source is at or below a path or URL."""
    if source == place or source.startswith(place.rstrip("/") + "/"):
        return True
    return holds_parts(place) and source.startswith(place + "#")


def holds_parts(place: str) -> bool:
    """Whether docs may lie in what has this name: mails, attachments, files of a repository."""
    if is_repository(place):
        return "#" not in place
    return re.search(_HOLDS_PARTS, place) is not None


def is_repository(source: str) -> bool:
    """Whether a source is the address of a repository, or of a file in one."""
    return source[: len(_REPOSITORY)].lower() == _REPOSITORY


def repository_source(location: str, path: str) -> str:
    """The source of a file in a repository, by its path there."""
    quoted = urllib.parse.quote(path, safe="/!$&()*+,;=:@~", errors="surrogateescape")
    return f"{location}#{quoted}"


def place_of(source: str) -> str | None:
    """The folder of a file, the site of a page or the repository of its file; else None."""
    if is_repository(source):
        return source.partition("#")[0]
    if source.startswith(("http://", "https://")):
        return "/".join(source.split("/", 3)[:3])
    folder, path = source.rpartition("/")[0], _without_machine(source)
    return folder if path.startswith("/") and path.count("/") > 1 else None


def _without_machine(source: str) -> str:
    """The path of a file that `display_name` named with its machine; other sources as they are."""
    machine, mark, path = source.partition(":/")
    is_of_machine = bool(mark) and not path.startswith("/") and re.fullmatch(_MACHINE, machine)
    return f"/{path}" if is_of_machine else source


def name_and_folders(source: str) -> tuple[str, str]:
    """The name of a file or page without its ending, and the folders or the site it lies in.

    Both are empty where the source has no name, as standard input. A mail of a mailbox has no name.
    """
    if is_repository(source):
        repository, _, path = source.partition("://")[2].partition("#")
        source = f"{repository}/{urllib.parse.unquote(path)}"
    elif "#" in source and (part := re.fullmatch(_PART, source)):
        names = part[2].split("/")
        if len(names) == 1:
            return "", part[1]
        source = f"{part[1]}/{names[-1]}"
    source = _without_machine(source)
    address = source.partition("://")[2].partition("?")[0].partition("#")[0] or source
    folders, _, name = address.replace("\\", "/").rstrip("/").rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if dot and stem.strip(".") and len(ending) <= _ENDING_CHARS_MAX and ending.isalnum():
        name, folders = stem, f"{folders}/{ending}"
    return ("", "") if name == STDIN_NAME else (name, folders)


def names_of(doc: Doc) -> tuple[str, ...]:
    """What people call a doc: its title, its file's name with and without the ending, aliases.

    The name of a picture, and of what is no text, has its ending: `Kitchen` means the note beside
    `Kitchen.png`.
    """
    name, _ = name_and_folders(doc.source)
    whole = doc.source.rpartition("/")[2]
    if is_repository(doc.source):
        whole = urllib.parse.unquote(whole.rpartition("#")[2])
    if is_named(doc.mime):
        return (whole, *(title for title in (doc.title,) if title != name), *doc.aliases)
    return (doc.title, name, whole, *doc.aliases)


def is_picture(mime: str) -> bool:
    """Whether a format is one of pictures."""
    return mime.startswith("image/")


def kind_of_source(source: str) -> FileKind | None:
    """What people call a file or a page of its format, by the ending of its name."""
    if is_repository(source):
        source = urllib.parse.unquote(source.partition("#")[2])
    elif "://" in source[:12]:
        source = source.partition("?")[0].partition("#")[0]
    return file_kind(ending_of(source))


def member_lsid(kind: Kind, collection: str, path: str) -> Lsid:
    """The lsid of a member of a topic or pack, by its path there; their common prefix for ""."""
    return Lsid(f"{kind}:{_quoted(collection)}/{urllib.parse.quote(os.fsencode(path))}")


def entry_lsid(zettel_id: str) -> Lsid:
    """The lsid of an entry, independent of its file's place; their common prefix for ""."""
    return Lsid(f"entry:{zettel_id}")


def owned_lsid(owner: str | None, lsid: str) -> Lsid:
    """The lsid of an uploaded source, which differs between owners.

    Sources of the local user, and those without an owner, keep their lsid.
    """
    return Lsid(lsid if owner in (None, LOCAL_USER) else f"user:{_quoted(owner)}/{lsid}")


def member_of(lsid: Lsid) -> tuple[str, str]:
    """The collection and the path of a member's lsid."""
    collection, _, path = lsid.partition(":")[2].partition("/")
    return urllib.parse.unquote(collection), os.fsdecode(urllib.parse.unquote_to_bytes(path))


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
