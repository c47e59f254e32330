"""What does a mail say? Its subject, who wrote to whom and when, and its text."""

import email
import email.policy
import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Final

from msgspec import structs

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.mail_page import read_page
from kb.intake.canonicalize.mail_parts import (
    MAIL_MIME,
    Part,
    answered,
    files_of,
    head_of,
    header,
    payload,
    split_parts,
)
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

PARTS_MAX: Final = 1_000
_QUOTE: Final = re.compile(r"(?:^>.*\n?){3,}", re.MULTILINE)
_ORIGINAL: Final = re.compile(r"^-{2,} ?Original Message ?-{2,}[^\n]*\n", re.MULTILINE)


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The subject as title, From, To, Cc and Date as lines, the text, and the attachments.

    The plain part goes before the HTML. Three quoted lines or more become one that counts them.
    Attachments of formats that kb reads are sources of their own; all are named. Parts after the
    first `PARTS_MAX` are left out.

    Raises:
        Unparsable: it has no header of a mail, or is damaged.
        EmptySource: neither subject nor text nor an attachment is in it.
    """
    try:
        mail = email.message_from_bytes(data.lstrip(), policy=email.policy.compat32)
        shown, attached = split_parts(mail, PARTS_MAX)
    except (ValueError, LookupError, RecursionError):
        raise Unparsable("it is damaged; export the mail again", source=name) from None
    if not any(mail.get(key) for key in ("From", "To", "Date", "Subject", "Received")):
        raise Unparsable("it has no header of a mail; export the mail again", source=name)
    subject = one_line(header(mail.get("Subject")))
    heads = {key: header(mail.get(key)) for key in ("From", "To", "Cc", "Date")}
    files, others = files_of(attached)
    names = [*(file.name for file in files), *others]
    body, date = _body(shown, name, charset), _date(mail.get("Date"))
    read = mail_doc(subject, heads, body, names, name, MAIL_MIME, date)
    return structs.replace(
        read,
        mail=head_of(mail),
        links=tuple(f"mail:{message_id}" for message_id in answered(mail)),
        attachments=tuple(files),
    )


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


def _body(parts: list[Part], name: str, charset: str | None) -> str:
    """The text of the mail."""
    plain = [_text(part, charset) for part in parts if part.get_content_type() == "text/plain"]
    if not any(text.strip() for text in plain):
        pages = (part for part in parts if part.get_content_type() == "text/html")
        plain = [read_page(payload(part), name, part.get_content_charset()) for part in pages]
    return "\n\n".join(plain)


def _text(part: Part, charset: str | None) -> str:
    declared = tuple(filter(None, (part.get_content_charset(), charset)))
    return clean_text(decode_text(payload(part), declared)[0]).strip("\n")


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
