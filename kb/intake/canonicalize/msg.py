"""What does a mail of Outlook say? The same as one of any other program, in its own container."""

import io
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from kb.errors import EmptySource, Unparsable
from kb.intake.canonicalize import html
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.eml import mail_doc
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

if TYPE_CHECKING:
    from olefile import OleFileIO

MIME: Final = "application/vnd.ms-outlook"
ATTACHMENTS_MAX: Final = 1_000
_SUBJECT, _SENDER, _ADDRESS, _SMTP = "0037", "0C1A", "0C1F", "5D01"
_TO, _CC, _BODY, _PAGE = "0E04", "0E03", "1000", "1013"
_LONG_NAME, _SHORT_NAME = "3707", "3704"
_SENT: Final = (0x0039, 0x0E06)
"""When it was sent, and when it was delivered."""
_TIME_TYPE: Final = 0x0040
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)
_HEADER_BYTES: Final = 32
_ENTRY_BYTES: Final = 16
_ENTRIES_MAX: Final = 10_000


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The subject as title, From, To, Cc and Date as lines, the text, the attachments' names.

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

    def attachments(self) -> list[str]:
        folders = sorted({p.partition("/")[0] for p in self._streams if p.startswith("__ATTACH")})
        names = (
            self.text(_LONG_NAME, folder) or self.text(_SHORT_NAME, folder)
            for folder in folders[:ATTACHMENTS_MAX]
        )
        return [one_line(name) or "an attachment" for name in names]

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
    sender = one_line(message.text(_SENDER))
    address = one_line(message.text(_SMTP) or message.text(_ADDRESS))
    # Within one company senders have a path in place of an address.
    if "@" in address and address != sender:
        sender = f"{sender} <{address}>".strip()
    date = message.date()
    heads = {
        "From": sender,
        "To": one_line(message.text(_TO), chars_max=2_000),
        "Cc": one_line(message.text(_CC), chars_max=2_000),
        "Date": date or "",
    }
    body = message.text(_BODY).strip()
    if not body and (page := message.page()):
        try:
            body = html.read(page, name).markdown
        except EmptySource:
            body = ""
    files = message.attachments()
    return mail_doc(one_line(message.text(_SUBJECT)), heads, body, files, name, MIME, date)
