"""What is in a mail besides its text? The people it names, the mails it answers, its files."""

import contextlib
import email.errors
import re
from collections.abc import Iterable, Sequence
from email.message import Message
from email.utils import getaddresses
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.mime import detect_mime
from kb.intake.canonicalize.parsers import PLAIN, parser_table
from kb.intake.canonicalize.title import one_line
from kb.model.file_kinds import is_named
from kb.model.mail import MailHead
from kb.model.text import AttachedFile

if TYPE_CHECKING:
    Part = Message[str, str]
else:
    Part = Message

MAIL_MIME: Final = "message/rfc822"
PEOPLE_MAX: Final = 200
FILES_MAX: Final = 100
_ID: Final = re.compile(r"<\s*([^<>\s]{1,998})\s*>")
_NAME_CHARS_MAX: Final = 120
_CALENDAR: Final = "text/calendar"
_NAMES: Final = {_CALENDAR: "invitation.ics"}
# The forms of a text that are read; of others the plain one says the same.
_FORMS: Final = ("text/plain", "text/html")
# What proves who wrote a mail says nothing, though its name may end like a text's.
_SEALS: Final = ("application/pgp", "application/pkcs7", "application/x-pkcs7", "text/x-amp")


class ShownPart(Struct, frozen=True):
    """A part that is text to be read."""

    part: Part
    group: int
    """The parts of one group say the same in several forms; 0 is none."""


def header(text: str | None) -> str:
    """A header's text on one line, its encoded words decoded as far as they can be."""
    from email.header import decode_header

    pieces: Sequence[tuple[str | bytes, str | None]] = [(text or "", None)]
    with contextlib.suppress(ValueError, email.errors.MessageError):
        pieces = decode_header(text or "")
    words = (
        piece if isinstance(piece, str) else decode_text(piece, (charset,) if charset else ())[0]
        for piece, charset in pieces
    )
    return " ".join(clean_text("".join(words)).split())


def headers(mail: Part, name: str) -> list[str]:
    """The headers of this name as they are written, letters that no encoding names decoded."""
    return [_plain(mail, str(value)) for key, value in mail.raw_items() if key.lower() == name]


def first_header(mail: Part, name: str) -> str:
    """The first header of this name as text; empty without one."""
    return header(next(iter(headers(mail, name)), ""))


def _plain(mail: Part, value: str) -> str:
    """The text of bytes beyond ASCII, which stand in `value` as lone surrogates."""
    if value.isascii():
        return value
    declared = next(filter(None, mail.get_charsets()), None)
    data = value.encode("utf-8", "surrogateescape")
    return decode_text(data, (declared,) if declared else ())[0]


def head_of(mail: Part) -> MailHead:
    """Who wrote it to whom, and its own id."""
    ids = _ids(mail, "message-id")
    return MailHead(
        sender=next(iter(_people(mail, "from")), ""),
        recipients=tuple(dict.fromkeys((*_people(mail, "to"), *_people(mail, "cc"))))[:PEOPLE_MAX],
        message_id=ids[0] if ids else "",
    )


def answered(mail: Part) -> tuple[str, ...]:
    """The ids of the mails that it answers, the nearest first, and of the one that began it all."""
    return nearest_first(_ids(mail, "in-reply-to"), _ids(mail, "references"))


def nearest_first(answered_ids: Sequence[str], before: Sequence[str]) -> tuple[str, ...]:
    """Of the mails before one, those that it answers, the last and the first of its thread."""
    return tuple(dict.fromkeys((*answered_ids, *before[-1:], *before[:1])))


def ids_in(text: str) -> list[str]:
    """The ids of mails in a header, without their brackets."""
    return _ID.findall(clean_text(text)) or text.split()[:1] if text.strip() else []


def _ids(mail: Part, name: str) -> list[str]:
    return ids_in(" ".join(headers(mail, name)))


def _people(mail: Part, name: str) -> list[str]:
    # Addresses are told apart before names are decoded, which may hold commas.
    written = getaddresses(headers(mail, name)[:PEOPLE_MAX])
    people = ((header(person), header(address)) for person, address in written[:PEOPLE_MAX])
    return [
        f"{person} <{address}>" if person and address and person != address else address or person
        for person, address in people
        if person or address
    ]


def split_parts(mail: Part, parts_max: int) -> tuple[list[ShownPart], list[Part]]:
    """The parts that are shown, and those that are files; a mail inside a mail is a file.

    An invitation is a file, though programs send it as another form of the mail's text.
    """
    shown: list[ShownPart] = []
    files: list[Part] = []
    waiting = [(mail, 0)]
    for number in range(1, parts_max + 1):
        if not waiting:
            break
        part, group = waiting.pop()
        kind = part.get_content_type()
        if part is not mail and kind == MAIL_MIME:
            files.append(part)
        elif part.is_multipart():
            inner_group = group or (number if kind == "multipart/alternative" else 0)
            waiting += ((inner, inner_group) for inner in reversed(_inner(part)))
        elif (
            part.get_filename()
            or part.get_content_disposition() == "attachment"
            or kind == _CALENDAR
        ):
            files.append(part)
        elif part.get_content_maintype() == "text" and (not group or kind in _FORMS):
            shown.append(ShownPart(part, group))
    return shown, files


def files_of(parts: Iterable[Part]) -> tuple[list[AttachedFile], list[str]]:
    """The files that kb reads, and the names of all others, such as pictures."""
    files: list[AttachedFile] = []
    others: list[str] = []
    for part in parts:
        kind = part.get_content_type()
        name, data = _file_name(part, kind), _bytes(part)
        if kind == _CALENDAR and any(_is_same(data, file.data) for file in files):
            continue
        file = None if kind.startswith(_SEALS) else readable(name, data, kind)
        if file is None or len(files) == FILES_MAX:
            others.append(name)
        elif file.mime == _CALENDAR:
            # An invitation is often sent twice, once without a name.
            files = [other for other in files if not _is_same(other.data, data)] + [file]
        else:
            files.append(file)
    return files, others


def readable(name: str, data: bytes, kind: str = "") -> AttachedFile | None:
    """An attached file of a format that kb reads; its sender may say what `kind` it is."""
    table = parser_table()
    mime = MAIL_MIME if kind == MAIL_MIME else detect_mime(data, name)
    is_sure = mime != PLAIN or kind == PLAIN or _ending(name) in table.mime_of
    is_read = mime in table.by_mime and is_sure and not is_named(mime)
    return AttachedFile(name=name, mime=mime, data=data) if is_read and data.strip() else None


def _is_same(data: bytes, other: bytes) -> bool:
    return data.split() == other.split()


def payload(part: Part) -> bytes:
    """The bytes of a part, its transfer encoding undone."""
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _bytes(part: Part) -> bytes:
    if part.get_content_type() != MAIL_MIME:
        return payload(part)
    if inner := _inner(part):
        with contextlib.suppress(ValueError, LookupError, KeyError):
            return inner[0].as_bytes()
    return payload(part)


def _inner(part: Part) -> list[Part]:
    inner = part.get_payload()
    return [one for one in inner if isinstance(one, Message)] if isinstance(inner, list) else []


def _file_name(part: Part, kind: str) -> str:
    name = one_line(header(_plain(part, part.get_filename() or "")), chars_max=_NAME_CHARS_MAX)
    name = name.replace("\\", "/").rpartition("/")[2]
    if kind == MAIL_MIME:
        subject = next((first_header(inner, "subject") for inner in _inner(part)), "")
        name = name or one_line(subject, chars_max=_NAME_CHARS_MAX).replace("/", "-")
        return name if name.lower().endswith(".eml") else f"{name or 'mail'}.eml"
    return name or _NAMES.get(kind, kind)


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""
