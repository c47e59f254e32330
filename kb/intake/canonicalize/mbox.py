"""What do the mails of a mailbox say? Each is a section: its subject, its header and its text."""

import re
from collections.abc import Iterator
from typing import Final

from kb.errors import SourceError, Unparsable
from kb.intake.canonicalize import eml
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.model.text import Canonical

MIME: Final = "application/mbox"
# A mail begins at such a line below an empty one; in a mail it is quoted.
_POSTMARK: Final = re.compile(rb"(?:\A|\r?\n\r?\n)From [^\n]{1,400}\n")
_QUOTED: Final = re.compile(rb"^>(>*From )", re.MULTILINE)


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The mails in their order, each as `eml.read` has it; one that is damaged is counted.

    Raises:
        Unparsable: it is no mailbox.
        EmptySource: no mail has text.
    """
    if not data.lstrip().startswith(b"From "):
        raise Unparsable("it is no mailbox; export it again", source=name)
    blocks: list[str] = []
    chars = damaged = 0
    for mail in _mails(data.lstrip()):
        try:
            said = eml.read(mail, name, charset)
        except SourceError:
            damaged += 1
            continue
        title = f"## {said.title}" if said.markdown.startswith("# ") else "## Without a subject"
        text = said.markdown.partition("\n")[2] if said.markdown.startswith("# ") else said.markdown
        chars += len(text)
        if chars > TEXT_CHARS_MAX:
            raise TextTooLong
        blocks += [title, text.strip("\n")]
    warnings = [f"{damaged} of its mails could not be read"] if damaged else []
    return finish(blocks, name, MIME, warnings=warnings, is_titled=False)


def _mails(data: bytes) -> Iterator[bytes]:
    starts = [match.end() for match in _POSTMARK.finditer(data)]
    ends = [match.start() for match in _POSTMARK.finditer(data)][1:]
    for start, end in zip(starts, [*ends, len(data)], strict=True):
        yield _QUOTED.sub(rb"\1", data[start:end])
