"""What does a mail of Outlook say? The same as one of any other program, in its own container."""

import io
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import structs

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import escaped
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.eml import mail_doc
from kb.intake.canonicalize.mail_page import read_page
from kb.intake.canonicalize.mail_parts import (
    FILES_MAX,
    PEOPLE_MAX,
    ids_in,
    nearest_first,
    readable,
)
from kb.intake.canonicalize.title import one_line
from kb.model.mail import MailHead
from kb.model.text import AttachedFile, Canonical

if TYPE_CHECKING:
    from olefile import OleFileIO

MIME: Final = "application/vnd.ms-outlook"
ATTACHMENTS_MAX: Final = 1_000
_SUBJECT, _SENDER, _ADDRESS, _SMTP = "0037", "0C1A", "0C1F", "5D01"
_TO, _CC, _BODY, _PAGE = "0E04", "0E03", "1000", "1013"
_LONG_NAME, _SHORT_NAME, _DATA = "3707", "3704", "3701"
_MESSAGE_ID, _ANSWERED, _REFERENCES = "1035", "1042", "1039"
_PERSON, _PERSON_SMTP, _PERSON_ADDRESS = "3001", "39FE", "3003"
_SENT: Final = (0x0039, 0x0E06)
"""When it was sent, and when it was delivered."""
_TIME_TYPE: Final = 0x0040
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)
_HEADER_BYTES: Final = 32
_ENTRY_BYTES: Final = 16
_ENTRIES_MAX: Final = 10_000


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The subject as title, From, To, Cc and Date as lines, the text, and the attachments.

    Attachments of formats that kb reads are sources of their own; all are named.

    Raises:
        Unparsable: it is damaged, or no mail.
        EmptySource: neither subject nor text is in it.
    """
    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(data)) as ole:
            if not ole.exists("__properties_version1.0"):
                raise Unparsable("it is no mail of Outlook; export it again", source=name)
            return _mail(_Message(ole), name)
    except (OSError, ValueError, IndexError, OverflowError):
        raise Unparsable("it is damaged; export the mail again", source=name) from None


class _Message:
    """The properties of a mail, by their four digits."""

    def __init__(self, ole: "OleFileIO") -> None:
        self._ole = ole
        self._streams = {"/".join(path).upper(): path for path in ole.listdir()}

    def text(self, number: str, folder: str = "") -> str:
        """A text, whichever way it is encoded; empty if there is none."""
        if wide := self._bytes(number, "001F", folder):
            return clean_text(wide.decode("utf-16-le", "replace")).strip("\0")
        narrow = self._bytes(number, "001E", folder)
        return clean_text(decode_text(narrow)[0]).strip("\0") if narrow else ""

    def page(self) -> bytes:
        """The HTML as it is encoded."""
        return self._bytes(_PAGE, "0102") or self.text(_PAGE).encode()

    def attachments(self) -> tuple[list[AttachedFile], list[str]]:
        """The files that kb reads, and the names of all."""
        files: list[AttachedFile] = []
        names: list[str] = []
        for folder in self._folders("__ATTACH"):
            name = one_line(self.text(_LONG_NAME, folder) or self.text(_SHORT_NAME, folder))
            names.append(name or "an attachment")
            if len(files) < FILES_MAX:
                file = readable(names[-1], self._bytes(_DATA, "0102", folder))
                files += [file] if file is not None else []
        return files, names

    def people(self) -> list[str]:
        """To whom it is, with their addresses where they are told."""
        people = (
            _person(
                one_line(self.text(_PERSON, folder)),
                one_line(self.text(_PERSON_SMTP, folder) or self.text(_PERSON_ADDRESS, folder)),
            )
            for folder in self._folders("__RECIP")[:PEOPLE_MAX]
        )
        return list(dict.fromkeys(filter(None, people)))

    def _folders(self, start: str) -> list[str]:
        names = {path.partition("/")[0] for path in self._streams if path.startswith(start)}
        return sorted(names)[:ATTACHMENTS_MAX]

    def date(self) -> str | None:
        """When it was sent, in UTC, ISO 8601."""
        stored = self._stream("__PROPERTIES_VERSION1.0")
        times: dict[int, int] = {}
        last = min(len(stored), _HEADER_BYTES + _ENTRIES_MAX * _ENTRY_BYTES) - _ENTRY_BYTES
        for at in range(_HEADER_BYTES, last + 1, _ENTRY_BYTES):
            kind, number = (int.from_bytes(stored[i : i + 2], "little") for i in (at, at + 2))
            if kind == _TIME_TYPE:
                times[number] = int.from_bytes(stored[at + 8 : at + 16], "little")
        ticks = next((times[number] for number in _SENT if times.get(number)), 0)
        try:
            when = _EPOCH + timedelta(microseconds=ticks // 10)
        except OverflowError:
            return None
        return when.isoformat(timespec="seconds") if ticks else None

    def _bytes(self, number: str, kind: str, folder: str = "") -> bytes:
        stream = f"__SUBSTG1.0_{number}{kind}"
        return self._stream(f"{folder}/{stream}" if folder else stream)

    def _stream(self, path: str) -> bytes:
        known = self._streams.get(path)
        return bytes(self._ole.openstream(known).read()) if known else b""


def _mail(message: _Message, name: str) -> Canonical:
    subject = one_line(message.text(_SUBJECT))
    address = one_line(message.text(_SMTP) or message.text(_ADDRESS))
    sender = _person(one_line(message.text(_SENDER)), address)
    date = message.date()
    heads = {
        "From": sender,
        "To": one_line(message.text(_TO), chars_max=2_000),
        "Cc": one_line(message.text(_CC), chars_max=2_000),
        "Date": date or "",
    }
    body = escaped(message.text(_BODY).strip())
    if not body and (page := message.page()):
        body = read_page(page, name, None)
    files, names = message.attachments()
    ids = [ids_in(message.text(number)) for number in (_MESSAGE_ID, _ANSWERED, _REFERENCES)]
    own, answered, before = ids
    head = MailHead(
        sender=sender,
        recipients=tuple(message.people()),
        message_id=next(iter(own), ""),
    )
    return structs.replace(
        mail_doc(subject, heads, body, names, name, MIME, date, head),
        links=tuple(f"mail:{other}" for other in nearest_first(answered, before)),
        attachments=tuple(files),
    )


def _person(name: str, address: str) -> str:
    # Within one company people have a path in place of an address.
    if "@" in address and address != name:
        return f"{name} <{address}>".strip()
    return name
