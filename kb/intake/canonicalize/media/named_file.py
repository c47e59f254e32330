"""What does the doc of a file say that is no text? What it is, what it is called, who made it."""

from collections.abc import Callable
from typing import Final

import msgspec

from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.media.facts import MediaFacts
from kb.model.file_kinds import NAMED_MIMES, FileKind, file_kind
from kb.model.source import ending_of
from kb.model.text import Canonical

_LABELS: Final[dict[FileKind, str]] = {
    "audio": "audio",
    "video": "video",
    "picture": "picture of a camera",
    "archive": "archive",
    "font": "font",
    "model": "model",
    "design": "drawing",
    "book": "book",
    "app": "application",
    "document": "document",
    "sheet": "sheet",
    "slides": "slides",
}
_TITLE_JOINT: Final = " \u2013 "


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """What the first and last bytes of a file say of it, as a paragraph, and its names in a list.

    A sound is called after its artist and its title, as players show it. Titles and the names in
    an archive are names, which words of them find; what somebody wrote about the file is text.
    """
    ending = ending_of(name)
    mime = NAMED_MIMES.get(ending) or _mime_of(data)
    facts = _facts(data, mime)
    date = iso_date(facts.date) if facts.date else None
    kind = file_kind(ending)
    # Slides of Keynote are a zip; a private key has the same ending.
    is_sure = kind is not None and (kind != "slides" or data.startswith(b"PK"))
    what = _LABELS[kind] if kind is not None and is_sure else "file"
    label = " ".join(filter(None, (ending.upper(), what)))
    canonical = finish(
        (facts.text, _described(label, facts, date), _listed(facts)),
        name,
        mime,
        title=_TITLE_JOINT.join(filter(None, (facts.people, facts.title))) if facts.title else "",
        date=date,
        is_titled=False,
    )
    return msgspec.structs.replace(canonical, by_name=not facts.text)


def _described(label: str, facts: MediaFacts, date: str | None) -> str:
    length = f", {_clock(facts.seconds)}" if facts.seconds >= 1 else ""
    lines = (
        f"{label}{length}",
        f"Title: {facts.title}" if facts.title else "",
        f"By: {facts.people}" if facts.people else "",
        f"Album: {facts.album}" if facts.album else "",
        f"Date: {(date or facts.date).replace('T', ' ')}" if facts.date else "",
    )
    return "  \n".join(filter(None, lines))


def _listed(facts: MediaFacts) -> str:
    if not facts.members:
        return ""
    count = max(facts.members_count, len(facts.members))
    more = f", the first {len(facts.members)}" if count > len(facts.members) else ""
    head = f"In it are {count:,} files{more}:" if facts.members_count else "It begins with:"
    return head + "\n\n" + "\n".join(f"- {name}" for name in facts.members)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _mime_of(data: bytes) -> str:
    """The type of a file whose name does not tell it."""
    from kb.intake.canonicalize.mime import BINARY, detect_mime

    mime = detect_mime(data, None)
    return mime if mime in NAMED_MIMES.values() else BINARY


def _facts(data: bytes, mime: str) -> MediaFacts:
    reader = _reader(data, mime)
    return MediaFacts() if reader is None else reader(data)


def _reader(data: bytes, mime: str) -> Callable[[bytes], MediaFacts] | None:
    """Who reads the facts: by how the file begins, since endings lie, and by its type."""
    from kb.intake.canonicalize.media import (
        archives,
        boxes,
        chunked,
        id3,
        matroska,
        mobipocket,
        vorbis,
    )

    by_start: tuple[tuple[bytes, Callable[[bytes], MediaFacts]], ...] = (
        (b"fLaC", vorbis.flac_facts),
        (b"OggS", vorbis.ogg_facts),
        (b"\x1a\x45\xdf\xa3", matroska.facts_of),
        (b"\x30\x26\xb2\x75", chunked.asf_facts),
        (b"\x1f\x8b", archives.gzip_facts),
    )
    found = next((reader for start, reader in by_start if data.startswith(start)), None)
    if found is not None:
        return found
    if data[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        return boxes.facts_of
    if data.startswith(b"RIFF") and data[8:12] in (b"WAVE", b"AVI "):
        return chunked.riff_facts
    if data.startswith(b"FORM") and data[8:12] in (b"AIFF", b"AIFC"):
        return chunked.aiff_facts
    if data[60:68] == b"BOOKMOBI":
        return mobipocket.facts_of
    if data[257:262] == b"ustar":
        return archives.tar_facts
    if mime == "image/x-raw":
        return _camera_facts
    by_mime = {"application/zip": archives.zip_facts, "audio/mpeg": id3.facts_of}
    return by_mime.get(mime)


def _camera_facts(data: bytes) -> MediaFacts:
    """Of a camera's own format: when it took the picture and what it is called."""
    from kb.intake.canonicalize.pictures.containers import parts_of
    from kb.intake.canonicalize.pictures.facts import facts_of

    parts = parts_of(data)
    if parts is None:
        return MediaFacts()
    said = facts_of(parts)
    return MediaFacts(
        title=said.title,
        date=said.date or "",
        text="\n\n".join(filter(None, (said.description, ", ".join(said.keywords)))),
    )
