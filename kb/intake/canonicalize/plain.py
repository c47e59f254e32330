"""What does a plain text say? Itself."""

from kb.errors import EmptySource
from kb.intake.canonicalize.decode import clean_text, decode_text, has_text
from kb.intake.canonicalize.title import fallback_title
from kb.model.text import Canonical


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The text unescaped and as it stands; raises EmptySource where there is none."""
    decoded, warning = decode_text(data, (charset,) if charset else ())
    text = clean_text(decoded).rstrip("\n") + "\n"
    if not has_text(text):
        raise EmptySource("there is no text in it", source=name)
    return Canonical(
        markdown=text,
        title=fallback_title(name, text),
        mime="text/plain",
        warnings=(warning,) if warning else (),
    )
