"""What is said in a film or a talk? The cues of SubRip and WebVTT files, as running text."""

import html
import re
from typing import Final

from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.model.text import Canonical

_MIMES: Final = {True: "text/vtt", False: "application/x-subrip"}
_TIME: Final = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,]\d{1,6}"
_CUE: Final = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}.*")
_SPEAKER: Final = re.compile(r"<v(?:\.[^\s>]{1,40})*[ \t]+([^<>\n]{1,100})>")
_TAG: Final = re.compile(r"<[^<>\n]{0,200}>|\{\\[^{}\n]{0,100}\}")
# A paragraph is about as long as a thought.
_PARAGRAPH_S: Final = 60


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """Paragraphs of about a minute, each after the time at which it begins.

    Numbers, positions and styles are left out, and so is what a cue repeats of the one before.

    Raises:
        EmptySource: nothing is said in it.
    """
    text = clean_text(decode_text(data, (charset,) if charset else ())[0]).lstrip("\ufeff")
    is_vtt = text.startswith("WEBVTT")
    paragraphs: list[tuple[int, list[str]]] = []
    said: list[str] = []
    speaker = ""
    for start, lines in _cues(text):
        fresh = [line for line in lines if line not in said]
        said = lines
        for place, line in enumerate(fresh):
            name_said, mark, words = line.partition("\ue000")
            if mark:
                fresh[place] = words if name_said == speaker else f"{name_said}: {words}"
                speaker = name_said
        if not paragraphs or start - paragraphs[-1][0] >= _PARAGRAPH_S:
            paragraphs.append((start, []))
        paragraphs[-1][1].extend(fresh)
    blocks = [f"[{_clock(start)}] {' '.join(lines)}" for start, lines in paragraphs if lines]
    return finish(blocks, name, _MIMES[is_vtt])


def _cues(text: str) -> list[tuple[int, list[str]]]:
    """The second at which each cue starts, and its lines."""
    cues: list[tuple[int, list[str]]] = []
    is_open = False
    for line in text.split("\n"):
        if match := _CUE.fullmatch(line):
            hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
            cues.append((hours * 3600 + minutes * 60 + seconds, []))
            is_open = True
        elif not line.strip():
            is_open = False
        elif is_open:
            spoken = _TAG.sub("", _SPEAKER.sub("\\1\ue000", line))
            words = " ".join(html.unescape(spoken).split())
            cues[-1][1].extend([words] if words else [])
    return cues


def _clock(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
