"""Is it UTF-16 or UTF-32 without a mark? Seen by the letters that each would yield."""

import codecs
import unicodedata
from collections import Counter
from typing import Final

_SAMPLE_BYTES: Final = 65_536
# Bytes that text in one or more bytes a letter has no use for; in wide letters they are frequent.
_TELLING: Final = bytes(b for b in (*range(32), 127) if b not in b"\t\n\v\f\r\b\x1b")
_JUDGED_CHARS: Final = 4096
_NO_TEXT_SHARE_MAX: Final = 0.01
# Letters of one language stand in few rows of 256; ideographs and Hangul syllables count as a row.
_ROWS_MAX: Final = 4
_ROWS_SHARE_MIN: Final = 0.95
_PARTS: Final = frozenset(" \n\r\t\u3000、。，！？：；")
# Lines of one word have no more.
_CHARS_A_PART_MAX: Final = 200
_WORD_SHARE: Final = 0.001
_NO_TEXT: Final = frozenset(("Cc", "Cn", "Co", "Cs"))
_NEWLINES: Final = frozenset("\t\n\r\f\v")
_CODECS: Final = (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2))


def unmarked_wide(data: bytes) -> str | None:
    """The codec where bytes without a mark are plainly UTF-16 or UTF-32, else None.

    Bytes without control characters are neither: that is told by one pass over the first 64 KiB.
    """
    sample = data[:_SAMPLE_BYTES]
    if len(sample) < 4 or len(sample) == len(sample.translate(None, _TELLING)):
        return None
    best, best_share = None, 0.0
    for codec, width in _CODECS:
        if len(data) % width == 0 and (share := _share_of_parts(sample, codec)) > best_share:
            best, best_share = codec, share
    return best


def _share_of_parts(sample: bytes, codec: str) -> float:
    """How many of the characters part words and sentences; 0 if it reads as no text."""
    try:
        text = codecs.getincrementaldecoder(codec)("strict").decode(sample)[:_JUDGED_CHARS]
    except UnicodeDecodeError:
        return 0.0
    total = len(text)
    letters = Counter(text)
    wrong = sum(n for letter, n in letters.items() if _is_no_text(letter))
    if not total or wrong > _NO_TEXT_SHARE_MAX * total:
        return 0.0
    rows = Counter[int]()
    for letter, n in letters.items():
        rows[_row(ord(letter))] += n
    parts = sum(letters[part] for part in _PARTS)
    in_rows = sum(n for _, n in rows.most_common(_ROWS_MAX))
    if in_rows < _ROWS_SHARE_MIN * total or parts * _CHARS_A_PART_MAX < total:
        # A word alone has nothing to part it from: then only Latin letters are told for sure.
        return _WORD_SHARE if not parts and rows[0] > total // 2 else 0.0
    return parts / total


def _is_no_text(letter: str) -> bool:
    return letter not in _NEWLINES and unicodedata.category(letter) in _NO_TEXT


def _row(code: int) -> int:
    if 0x3400 <= code < 0xA000:
        return 0x4E
    if 0xAC00 <= code < 0xD800:
        return 0xAC
    return code >> 8
