"""What does a mail say? Its subject, who wrote to whom and when, and its text."""

import email
import email.policy
import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Final

from msgspec import structs

from kb.errors import Unparsable
from kb.intake.canonicalize import html
from kb.intake.canonicalize.blocks import escaped, finish
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.mail_history import EarlierMail, split_history
from kb.intake.canonicalize.mail_page import page_words, read_page
from kb.intake.canonicalize.mail_parts import (
    MAIL_MIME,
    Part,
    ShownPart,
    answered,
    files_of,
    first_header,
    head_of,
    payload,
    split_parts,
)
from kb.intake.canonicalize.title import one_line
from kb.intake.canonicalize.vault import merged_tags
from kb.model.mail import EARLIER_MARK, MailHead
from kb.model.text import Canonical

PARTS_MAX: Final = 1_000
# A page that says so many times what the plain text says, says what that leaves out.
_FULLER: Final = 3
_LABELS: Final = ("x-gmail-labels", "keywords", "x-keywords")
# A program of Apple's writes the length of the mail above it, and its own notes below.
_LENGTH: Final = re.compile(rb"[ \t]*(\d{1,10})[ \t]*\r?\n")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The subject as title, From, To, Cc and Date as lines, the text, and the attachments.

    The plain text goes before the HTML, unless it is a stub beside it. Earlier mails that it
    repeats follow as sections, except in mails that pass others on. Labels are tags.
    Attachments of formats that kb reads are sources of their own; all are named. Parts after the
    first `PARTS_MAX` are left out.

    Raises:
        Unparsable: it has no header of a mail, or is damaged.
        EmptySource: neither subject nor text nor an attachment is in it.
    """
    try:
        mail = email.message_from_bytes(_unwrapped(data), policy=email.policy.compat32)
        shown, attached = split_parts(mail, PARTS_MAX)
    except (ValueError, LookupError, RecursionError):
        raise Unparsable("it is damaged; export the mail again", source=name) from None
    if not any(mail.get(key) for key in ("From", "To", "Date", "Subject", "Received")):
        raise Unparsable("it has no header of a mail; export the mail again", source=name)
    subject = one_line(first_header(mail, "subject"))
    heads = {key: first_header(mail, key.lower()) for key in ("From", "To", "Cc", "Date")}
    files, others = files_of(attached)
    names = [*(file.name for file in files), *others]
    body, date = _body(shown, name, charset), _date(mail.get("Date"))
    read = mail_doc(subject, heads, body, names, name, MAIL_MIME, date, head_of(mail))
    return structs.replace(
        read,
        tags=_labels(mail),
        links=tuple(f"mail:{message_id}" for message_id in answered(mail)),
        attachments=tuple(files),
    )


def _labels(mail: Part) -> tuple[str, ...]:
    """What its owner filed it under, as programs write it into a mail that they export."""
    labels = (one_line(label) for key in _LABELS for label in first_header(mail, key).split(","))
    return merged_tags(tuple(filter(None, labels)))


def mail_doc(
    subject: str,
    heads: Mapping[str, str],
    body: str,
    files: Sequence[str],
    name: str,
    mime: str,
    date: str | None,
    head: MailHead,
) -> Canonical:
    """A mail of any program: subject, the heads that say something, text, names of attachments.

    Below it the earlier mails that it repeats, each as a section. Raises EmptySource.
    """
    lines = [f"{key}: {value}" for key, value in heads.items() if value]
    own, earlier = split_history(subject, body)
    blocks = [f"# {subject}" if subject else "", "  \n".join(lines), own]
    if files:
        blocks.append("Attachments: " + ", ".join(files))
    read = finish(blocks, name, mime, title=subject, date=date, is_titled=False)
    markdown = read.markdown
    starts: list[int] = []
    for mail in earlier:
        markdown += "\n"
        starts.append(len(markdown))
        markdown += f"{clean_text(_section(mail)).strip()}\n"
    return structs.replace(
        read, markdown=markdown, mail=structs.replace(head, earlier=tuple(starts))
    )


def _section(mail: EarlierMail) -> str:
    name = f": {mail.name}" if mail.name else ""
    return f"{EARLIER_MARK}{name}\n\n{mail.text}"


def _body(parts: list[ShownPart], name: str, charset: str | None) -> str:
    """The text of the mail: of what it says in several forms, one."""
    groups: dict[int, list[Part]] = {}
    for number, shown in enumerate(parts):
        groups.setdefault(shown.group or -number - 1, []).append(shown.part)
    texts: list[str] = []
    for forms in groups.values():
        pages = [part for part in forms if part.get_content_type() == "text/html"]
        plain = "\n\n".join(_text(part, charset) for part in forms if part not in pages)
        if pages and not (plain.strip() and _says_enough(plain, pages)):
            plain = "\n\n".join(
                read_page(payload(part), name, part.get_content_charset()) for part in pages
            )
        texts.append(plain)
    return "\n\n".join(text for text in texts if text.strip())


def _says_enough(plain: str, pages: list[Part]) -> bool:
    """Whether a plain text is more than a hint to look at the page beside it."""
    shown = sum(
        len(page_words(html.page_text(payload(page), page.get_content_charset())[0]).split())
        for page in pages
    )
    return shown <= _FULLER * len(plain.split())


def _unwrapped(data: bytes) -> bytes:
    """A mail without what a program keeps around it."""
    if match := _LENGTH.match(data):
        return data[match.end() : match.end() + int(match[1])]
    return data.lstrip()


def _text(part: Part, charset: str | None) -> str:
    declared = tuple(filter(None, (part.get_content_charset(), charset)))
    return escaped(clean_text(decode_text(payload(part), declared)[0]).strip("\n"))


def _date(value: object) -> str | None:
    try:
        return parsedate_to_datetime(str(value)).isoformat()
    except (ValueError, TypeError, OverflowError):
        return None
