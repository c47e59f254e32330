"""What does a mail say? Its subject, who wrote to whom and when, and its text."""

import contextlib
import email
import email.errors
import email.policy
import re
from collections.abc import Mapping, Sequence
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Final

from kb.errors import EmptySource, Unparsable
from kb.intake.canonicalize import html
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

MIME: Final = "message/rfc822"
PARTS_MAX: Final = 1_000
_QUOTE: Final = re.compile(r"(?:^>.*\n?){3,}", re.MULTILINE)
_ORIGINAL: Final = re.compile(r"^-{2,} ?Original Message ?-{2,}[^\n]*\n", re.MULTILINE)


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The subject as title, From, To, Cc and Date as lines, the text, the attachments' names.

    The plain part goes before the HTML. Three quoted lines or more become one that counts them.
    Parts after the first `PARTS_MAX` are left out.

    Raises:
        Unparsable: it has no header of a mail, or is damaged.
        EmptySource: neither subject nor text is in it.
    """
    try:
        mail = email.message_from_bytes(data.lstrip(), policy=email.policy.compat32)
        parts = [part for _, part in zip(range(PARTS_MAX), mail.walk(), strict=False)]
    except (ValueError, LookupError, RecursionError):
        raise Unparsable("it is damaged; export the mail again", source=name) from None
    if not any(mail.get(key) for key in ("From", "To", "Date", "Subject", "Received")):
        raise Unparsable("it has no header of a mail; export the mail again", source=name)
    subject = one_line(_header(mail.get("Subject")))
    heads = {key: _header(mail.get(key)) for key in ("From", "To", "Cc", "Date")}
    body, files = _body(parts, name, charset)
    return mail_doc(subject, heads, body, files, name, MIME, _date(mail.get("Date")))


def mail_doc(
    subject: str,
    heads: Mapping[str, str],
    body: str,
    files: Sequence[str],
    name: str,
    mime: str,
    date: str | None,
) -> Canonical:
    """A mail of any program: subject, the heads that say something, text, names of attachments.

    Raises EmptySource.
    """
    lines = [f"{key}: {value}" for key, value in heads.items() if value]
    blocks = [f"# {subject}" if subject else "", "  \n".join(lines), _folded(body)]
    if files:
        blocks.append("Attachments: " + ", ".join(files))
    return finish(blocks, name, mime, title=subject, date=date, is_titled=False)


def _body(
    parts: "list[Message[str, str]]", name: str, charset: str | None
) -> tuple[str, list[str]]:
    """The text of the mail, and what its attachments are called."""
    plain: list[str] = []
    pages: list[str] = []
    files: list[str] = []
    for part in parts:
        kind = part.get_content_type()
        filename = part.get_filename()
        if part.is_multipart():
            continue
        if filename or part.get_content_disposition() == "attachment":
            files.append(one_line(_header(filename)) or kind)
        elif kind == "text/plain":
            plain.append(_text(part, charset))
        elif kind == "text/html":
            pages.append(_page(part, name))
    return "\n\n".join(plain if any(text.strip() for text in plain) else pages), files


def _header(value: object) -> str:
    from email.header import decode_header, make_header

    text = str(value or "")
    with contextlib.suppress(ValueError, LookupError, email.errors.MessageError):
        text = str(make_header(decode_header(text)))
    return " ".join(clean_text(text).split())


def _payload(part: "Message[str, str]") -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(part: "Message[str, str]", charset: str | None) -> str:
    declared = tuple(filter(None, (part.get_content_charset(), charset)))
    return clean_text(decode_text(_payload(part), declared)[0]).strip("\n")


def _page(part: "Message[str, str]", name: str) -> str:
    try:
        return html.read(_payload(part), name, part.get_content_charset()).markdown
    except EmptySource:
        return ""


def _folded(body: str) -> str:
    """The text with each quoted history folded to a line that counts what it leaves out."""
    if match := _ORIGINAL.search(body):
        left = body[match.end() :].strip("\n")
        body = f"{body[: match.start()]}[{_count(left)} of an earlier mail]"
    return _QUOTE.sub(lambda quote: f"[{_count(quote[0].rstrip())} quoted]\n", body)


def _count(text: str) -> str:
    lines = text.count("\n") + 1
    return "1 line" if lines == 1 else f"{lines} lines"


def _date(value: object) -> str | None:
    try:
        return parsedate_to_datetime(str(value)).isoformat()
    except (ValueError, TypeError, OverflowError):
        return None
