"""What does a picture's doc say? What people wrote into it, then size, camera and place."""

from typing import Final

import msgspec

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.pictures.containers import parts_of
from kb.intake.canonicalize.pictures.facts import PictureFacts, facts_of
from kb.intake.canonicalize.vault import merged_tags
from kb.model.doc import Coverage
from kb.model.text import Canonical

_MIMES: Final = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WebP": "image/webp",
    "TIFF": "image/tiff",
    "BMP": "image/bmp",
    "HEIC": "image/heic",
    "AVIF": "image/heic",
}
_NOT_RECOGNISED: Final = frozenset(("HEIC", "AVIF"))
# Icons and lines have no words.
_PIXELS_MIN: Final = 10_000
_SIDE_MIN: Final = 24


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """Title, description and keywords, then format, size, camera, date and place in a paragraph.

    Keywords are tags. A picture without words of people is known by its name, and one that is no
    icon has a page without text, which OCR may read.

    Raises:
        Unparsable: it is no picture of a format that kb knows.
    """
    parts = parts_of(data)
    if parts is None:
        raise Unparsable("it is damaged, or not the picture that its name says", source=name)
    facts = facts_of(parts)
    has_words = bool(facts.title or facts.description or facts.keywords)
    keywords = f"Keywords: {', '.join(facts.keywords)}" if facts.keywords else ""
    canonical = finish(
        (facts.description, keywords, _described(parts.format, facts)),
        name,
        _MIMES[parts.format],
        title=facts.title,
        date=facts.date,
        is_titled=False,
    )
    may_be_read = parts.format not in _NOT_RECOGNISED and not _is_icon(facts)
    return msgspec.structs.replace(
        canonical,
        tags=merged_tags(facts.keywords),
        coverage=Coverage(pages=1, pages_with_text=0) if may_be_read else None,
        by_name=not has_words,
    )


def _described(form: str, facts: PictureFacts) -> str:
    size = f", {facts.width} × {facts.height} pixels" if facts.width and facts.height else ""
    taken = f"Taken {facts.date.replace('T', ' ')}" if facts.date else ""
    lines = (
        f"{form} picture{size}",
        taken,
        f"Camera: {facts.camera}" if facts.camera else "",
        f"By: {facts.author}" if facts.author else "",
        f"Place: {facts.place}" if facts.place else "",
    )
    return "  \n".join(filter(None, lines))


def _is_icon(facts: PictureFacts) -> bool:
    sides = (facts.width, facts.height)
    return all(sides) and (min(sides) < _SIDE_MIN or sides[0] * sides[1] < _PIXELS_MIN)
