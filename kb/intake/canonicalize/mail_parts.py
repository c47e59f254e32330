"""What is in a mail besides its text? The people it names, the mails it answers, its files."""

import contextlib
import email.errors
import re
from collections.abc import Iterable
from email.message import Message
from email.utils import getaddresses
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.decode import clean_text
from kb.intake.canonicalize.mime import detect_mime
from kb.intake.canonicalize.parsers import PLAIN, parser_table
from kb.intake.canonicalize.title import one_line
from kb.model.mail import MailHead
from kb.model.text import AttachedFile

if TYPE_CHECKING:
    Part = Message[str, str]
else:
    Part = Message

MAIL_MIME: Final = "message/rfc822"
_PEOPLE_MAX: Final = 200
_FILES_MAX: Final = 100
_ID: Final = re.compile(r"<\s*([^<>\s]{1,998})\s*>")
_NAME_CHARS_MAX: Final = 120
# What proves who wrote a mail says nothing, though its name may end like a text's.
_SEALS: Final = ("application/pgp", "application/pkcs7", "application/x-pkcs7", "text/x-amp")


def header(value: object) -> str:
    """A header's text on one line, its encoded words decoded as far as they can be."""
    from email.header import decode_header, make_header

    text = str(value or "")
    with contextlib.suppress(ValueError, LookupError, email.errors.MessageError):
        text = str(make_header(decode_header(text)))
    return " ".join(clean_text(text).split())


def head_of(mail: Part) -> MailHead:
    """Who wrote it to whom, and its own id."""
    ids = _ids(mail, "Message-ID")
    return MailHead(
        sender=next(iter(_people(mail, "From")), ""),
        recipients=tuple(dict.fromkeys((*_people(mail, "To"), *_people(mail, "Cc"))))[:_PEOPLE_MAX],
        message_id=ids[0] if ids else "",
    )


def answered(mail: Part) -> tuple[str, ...]:
    """The ids of the mails that it answers, the nearest first, and of the one that began it all."""
    before = _ids(mail, "References")
    return tuple(dict.fromkeys((*_ids(mail, "In-Reply-To"), *before[-1:], *before[:1])))


def _ids(mail: Part, name: str) -> list[str]:
    text = " ".join(str(value) for value in mail.get_all(name, ()))
    return _ID.findall(clean_text(text)) or text.split()[:1] if text.strip() else []


def _people(mail: Part, name: str) -> list[str]:
    # Addresses are told apart before names are decoded, which may hold commas.
    written = getaddresses([str(value) for value in mail.get_all(name, ())[:_PEOPLE_MAX]])
    people = ((header(person), header(address)) for person, address in written[:_PEOPLE_MAX])
    return [
        f"{person} <{address}>" if person and address and person != address else address or person
        for person, address in people
        if person or address
    ]


def split_parts(mail: Part, parts_max: int) -> tuple[list[Part], list[Part]]:
    """The parts that are shown, and those that are files; a mail inside a mail is a file."""
    shown: list[Part] = []
    files: list[Part] = []
    waiting = [mail]
    for _ in range(parts_max):
        if not waiting:
            break
        part = waiting.pop()
        if part is not mail and part.get_content_type() == MAIL_MIME:
            files.append(part)
        elif part.is_multipart():
            waiting += reversed(_inner(part))
        elif part.get_filename() or part.get_content_disposition() == "attachment":
            files.append(part)
        elif part.get_content_maintype() == "text":
            shown.append(part)
    return shown, files


def files_of(parts: Iterable[Part]) -> tuple[list[AttachedFile], list[str]]:
    """The files that kb reads, and the names of all others, such as pictures."""
    table = parser_table()
    files: list[AttachedFile] = []
    others: list[str] = []
    for part in parts:
        kind = part.get_content_type()
        name = _file_name(part, kind)
        data = _bytes(part)
        mime = MAIL_MIME if kind == MAIL_MIME else detect_mime(data, name)
        is_sure = mime != PLAIN or kind == PLAIN or _ending(name) in table.mime_of
        is_read = mime in table.by_mime and is_sure and not mime.startswith("image/")
        if is_read and data.strip() and not kind.startswith(_SEALS) and len(files) < _FILES_MAX:
            files.append(AttachedFile(name=name, mime=mime, data=data))
        else:
            others.append(name)
    return files, others


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
    name = one_line(header(part.get_filename()), chars_max=_NAME_CHARS_MAX)
    name = name.replace("\\", "/").rpartition("/")[2]
    if kind == MAIL_MIME:
        subject = next((header(inner.get("Subject")) for inner in _inner(part)), "")
        name = name or one_line(subject, chars_max=_NAME_CHARS_MAX).replace("/", "-")
        return name if name.lower().endswith(".eml") else f"{name or 'mail'}.eml"
    return name or kind


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""
