"""What does a plain text say? Itself."""

import re
from typing import Final

from kb.errors import EmptySource
from kb.intake.canonicalize.decode import clean_text, decode_text, has_text
from kb.intake.canonicalize.title import fallback_title
from kb.model.text import Canonical

_DATED: Final = re.compile(r"[\u200e\u202a]?\[?\d{1,4}[./-]\d")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The text unescaped and as it stands; raises EmptySource where there is none.

    Of an exported chat the day of its last message.
    """
    decoded, warning = decode_text(data, (charset,) if charset else ())
    text = clean_text(decoded).rstrip("\n") + "\n"
    if not has_text(text):
        raise EmptySource("there is no text in it", source=name)
    return Canonical(
        markdown=text,
        title=fallback_title(name, text),
        mime="text/plain",
        date=_chat_date(text),
        warnings=(warning,) if warning else (),
    )


def _chat_date(text: str) -> str | None:
    if _DATED.match(text) is None:
        return None
    # Imported late: most texts are no chats.
    from kb.intake.canonicalize.chat_log import chat_date

    return chat_date(text)
