"""Is this text, or what a font without an encoding gives? A cheap measure of one page."""

import re
import unicodedata
from typing import Final

# What readers write for a glyph that they know no character for.
_GLYPH_NAME: Final = re.compile(
    r"/(?:g|gid|glyph|cid|uni|index|c|a)\d{1,5}\b|\(cid:\d{1,5}\)", re.IGNORECASE
)
_NO_CHARACTER: Final = re.compile("[\\ue000-\\uf8ff\\ufffd-\\uffff]")
# Letters of scripts that part words by spaces.
_RUN: Final = re.compile("[A-Za-z\u00c0-\u024f\u0370-\u04ff]{28,}")
_ROW_OF_SINGLES: Final = re.compile(
    "(?<!\\S)[A-Za-z\u00c0-\u1fff](?: {1,3}[A-Za-z\u00c0-\u1fff](?!\\S)){3,}"
)
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_LETTERS: Final = bytes(set(range(256)) - set(_LETTERS))
_NO_CONSONANTS: Final = _NO_LETTERS + b"aeiouyAEIOUY"

_GLYPHS_SHARE_MAX: Final = 0.3
_RUNS_SHARE_MAX: Final = 0.4
_RUN_LETTERS_MIN: Final = 100
_SINGLES_SHARE_MAX: Final = 0.7
_SINGLES_MIN: Final = 10
# Tables of parts and of pins have few vowels, but also digits and signs.
_JUDGED_LETTERS_MIN: Final = 200
_JUDGED_SHARE_MIN: Final = 0.8
# Of the letters of any language in Latin letters, a third and more are vowels.
_VOWELS_SHARE_MIN: Final = 0.18


def is_noise(text: str) -> bool:
    """Whether most of the text is names of glyphs, wrong letters, or letters that make no words.

    Text without letters, such as a table of numbers, is no noise.
    """
    words = text.split()
    shown = sum(map(len, words))
    return bool(shown) and (
        _has_glyphs(text, shown)
        or _is_spaced(text, words)
        or sum(map(len, _RUN.findall(text))) > max(_RUN_LETTERS_MIN, _RUNS_SHARE_MAX * shown)
        or _lacks_vowels(text, shown)
    )


def with_letters_joined(line: str) -> str:
    """The line's words, where each letter stands alone and wider spaces part the words."""
    if "  " not in line.strip():
        return line
    return " ".join(part.replace(" ", "") for part in re.split(" {2,}", line.strip()))


def _has_glyphs(text: str, shown: int) -> bool:
    named = sum(map(len, _GLYPH_NAME.findall(text)))
    if not text.isascii():
        named += len(_NO_CHARACTER.findall(text))
    return named > _GLYPHS_SHARE_MAX * shown


def _is_spaced(text: str, words: list[str]) -> bool:
    """Whether most letters stand alone in rows of such; those of a table stand in cells."""
    if sum(len(word) == 1 for word in words) < _SINGLES_MIN:
        return False
    singles = sum(map(str.isalpha, "".join(_ROW_OF_SINGLES.findall(text))))
    return singles > max(_SINGLES_MIN, _SINGLES_SHARE_MAX * sum(map(str.isalpha, text)))


def _lacks_vowels(text: str, shown: int) -> bool:
    if not text.isascii():
        text = unicodedata.normalize("NFD", text)
    latin = text.encode("ascii", "ignore")
    letters = len(latin.translate(None, _NO_LETTERS))
    if letters < max(_JUDGED_LETTERS_MIN, _JUDGED_SHARE_MIN * shown):
        return False
    vowels = letters - len(latin.translate(None, _NO_CONSONANTS))
    return vowels < _VOWELS_SHARE_MIN * letters
