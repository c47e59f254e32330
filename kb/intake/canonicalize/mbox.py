"""What do the mails of a mailbox say? Each is a section: its subject, its header and its text."""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kb.errors import SourceError, Unparsable
from kb.intake.canonicalize import eml
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.model.text import Canonical

MIME: Final = "application/mbox"
# A mail begins with such a line below an empty one, which has a date or stands above a header; in a
# mail it is quoted.
_POSTMARK: Final = re.compile(
    rb"(?:\r?\n){2}From "
    rb"(?:[^\n]{0,200}(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) +[A-Z][a-z]{2} +\d[^\n]{1,100}\n"
    rb"|[^\n]{1,400}\n(?=[!-9;-~]{1,100}:|>From ))"
)
_FIRST_LINE: Final = re.compile(rb"\s{0,100}From [^\n]{1,400}\n")
_POSTMARK_BYTES_MAX: Final = 600
_QUOTED: Final = re.compile(rb"^>(>*From )", re.MULTILINE)
_HEAD_BYTES_MAX: Final = 1 << 16
# What mail programs write into a mailbox of their own, and change when a mail is read.
_STATE: Final = re.compile(
    rb"^(?:X-Mozilla-(?:Status2?|Keys)|X?-?Status|X-Keywords|X-UID|X-IMAP(?:base)?):"
    rb"[^\n]*\n(?:[ \t][^\n]*\n)*",
    re.MULTILINE | re.IGNORECASE,
)
_MESSAGE_ID: Final = re.compile(rb"(?im)^message-id:\s*<?([^<>\r\n]{1,998})")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")


class MailBytes(Struct, frozen=True, kw_only=True):
    """One mail of a mailbox, without what the mailbox adds to it."""

    data: bytes
    """Of a mail over the limit only its head, or the first 64 KiB of that."""
    size_bytes: int
    is_over: bool = False

    @property
    def message_id(self) -> str:
        """Its Message-ID without angle brackets; empty where it has none."""
        match = _MESSAGE_ID.search(_head(self.data))
        return " ".join(match[1].decode("utf-8", "replace").split()) if match else ""


def mails_of(blocks: Iterable[bytes], mail_bytes_max: int, name: str) -> Iterator[MailBytes]:
    """The mails of a mailbox that comes in blocks, in their order.

    Holds at most two mails of the limit and one block in memory. Raises Unparsable if the first
    line is not that of a mailbox.
    """
    held, at, size = bytearray(), 0, 0
    is_begun = is_over = False
    for block in blocks:
        held += block
        if not is_begun and (is_begun := len(held) > _POSTMARK_BYTES_MAX):
            _drop_first_line(held, name)
        while is_begun and (match := _POSTMARK.search(held, at)):
            yield _mail(held[: match.start()], size + match.start(), mail_bytes_max)
            del held[: match.end()]
            at = size = 0
            is_over = False
        at = max(0, len(held) - _POSTMARK_BYTES_MAX)
        if is_over or len(held) > mail_bytes_max + _POSTMARK_BYTES_MAX:
            # Its head is enough to name it; the rest is only searched for the next mail.
            is_over = True
            cut = min(_HEAD_BYTES_MAX, at)
            size += at - cut
            del held[cut:at]
            at = cut
    if not is_begun:
        _drop_first_line(held, name)
    while match := _POSTMARK.search(held, at):
        yield _mail(held[: match.start()], size + match.start(), mail_bytes_max)
        del held[: match.end()]
        at = size = 0
    yield _mail(held, size + len(held), mail_bytes_max)


def _drop_first_line(held: bytearray, name: str) -> None:
    match = _FIRST_LINE.match(held)
    if match is None:
        raise Unparsable("it is no mailbox; export it again", source=name)
    del held[: match.end()]


def _mail(data: bytearray, size_bytes: int, bytes_max: int) -> MailBytes:
    if size_bytes > bytes_max:
        return MailBytes(data=_head(bytes(data)), size_bytes=size_bytes, is_over=True)
    head = _head(bytes(data))
    plain = _STATE.sub(b"", head) + bytes(data[len(head) :])
    # Whether a mail is the last one must not matter.
    plain = _QUOTED.sub(rb"\1", plain).rstrip(b"\r\n") + b"\n"
    return MailBytes(data=plain, size_bytes=size_bytes)


def _head(data: bytes) -> bytes:
    end = _HEAD_END.search(data, 0, _HEAD_BYTES_MAX)
    return data[: end.start() + 1 if end else _HEAD_BYTES_MAX]


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The mails in their order, each as `eml.read` has it; one that is damaged is counted.

    Raises:
        Unparsable: it is no mailbox.
        EmptySource: no mail has text.
    """
    blocks: list[str] = []
    chars = damaged = 0
    for mail in mails_of((data,), len(data), name):
        try:
            said = eml.read(mail.data, name, charset)
        except SourceError:
            damaged += 1
            continue
        is_titled, text = said.markdown.startswith("# "), _with_deeper_sections(said)
        title = f"## {said.title}" if is_titled else "## Without a subject"
        text = text.partition("\n")[2] if is_titled else text
        chars += len(text)
        if chars > TEXT_CHARS_MAX:
            raise TextTooLong
        blocks += [title, text.strip("\n")]
    warnings = [f"{damaged} of its mails could not be read"] if damaged else []
    return finish(blocks, name, MIME, warnings=warnings, is_titled=False)


def _with_deeper_sections(mail: Canonical) -> str:
    """The markdown of a mail whose earlier mails are sections of it, not of the mailbox."""
    starts = [0, *(mail.mail.earlier if mail.mail else ()), len(mail.markdown)]
    return "#".join(mail.markdown[a:b] for a, b in itertools.pairwise(starts))
