"""Which scripts is a text written in, and does the model read them?"""

from bisect import bisect_right
from collections import Counter
from typing import Final

OTHER: Final = "Other"
# Coarse: whole Unicode blocks as (first code point, last, script), ascending. Only letters count.
_BLOCKS: Final = (
    (0x0041, 0x024F, "Latin"),
    (0x0250, 0x02AF, "Latin"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0750, 0x077F, "Arabic"),
    (0x08A0, 0x08FF, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x1100, 0x11FF, "Hangul"),
    (0x1C80, 0x1C8F, "Cyrillic"),
    (0x1D00, 0x1DBF, "Latin"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x2C60, 0x2C7F, "Latin"),
    (0x2DE0, 0x2DFF, "Cyrillic"),
    (0x3005, 0x3007, "Han"),
    (0x3041, 0x309F, "Hiragana"),
    (0x30A0, 0x30FF, "Katakana"),
    (0x3130, 0x318F, "Hangul"),
    (0x31F0, 0x31FF, "Katakana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xA640, 0xA69F, "Cyrillic"),
    (0xA720, 0xA7FF, "Latin"),
    (0xA8E0, 0xA8FF, "Devanagari"),
    (0xA960, 0xA97F, "Hangul"),
    (0xAB30, 0xAB6F, "Latin"),
    (0xAC00, 0xD7FF, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFB00, 0xFB06, "Latin"),
    (0xFB1D, 0xFB4F, "Hebrew"),
    (0xFB50, 0xFDFF, "Arabic"),
    (0xFE70, 0xFEFF, "Arabic"),
    (0xFF21, 0xFF5A, "Latin"),
    (0xFF66, 0xFF9F, "Katakana"),
    (0xFFA0, 0xFFDC, "Hangul"),
    (0x20000, 0x323AF, "Han"),
)
_FIRSTS: Final = tuple(first for first, _, _ in _BLOCKS)
SCRIPTS: Final = frozenset({*(script for _, _, script in _BLOCKS), OTHER})
# One of these characters writes a syllable or a word, for which an alphabet needs several.
_LETTERS_PER_CHARACTER: Final = {"Han": 2, "Hiragana": 2, "Katakana": 2, "Hangul": 2}

# Letters a token. With the built-in model nine in ten English questions have 3.2 or more, and nine
# in ten in Turkish, Vietnamese and Romanian 2.7 or less.
_FOREIGN_LETTERS: Final = 2.5
_KNOWN_LETTERS: Final = 3.0


def scripts_of(text: str) -> dict[str, int]:
    """The number of letters by script, for scripts that occur, in order of their first letter."""
    letters: dict[str, int] = {}
    for character, count in Counter(text).items():
        if character.isalpha():
            script = _script(ord(character))
            letters[script] = letters.get(script, 0) + count
    return letters


def can_read(embedder_scripts: frozenset[str], text: str, share_min: float = 0.5) -> bool:
    """Whether at least `share_min` of the letters are of scripts that the model reads.

    Characters that stand for a syllable or a word weigh two. A text without letters can be read.
    """
    if "*" in embedder_scripts:
        return True
    weights = {
        script: count * _LETTERS_PER_CHARACTER.get(script, 1)
        for script, count in scripts_of(text).items()
    }
    read = sum(weight for script, weight in weights.items() if script in embedder_scripts)
    return read >= share_min * sum(weights.values())


def familiarity(text: str, tokens: int) -> float:
    """How well a model knows the language of a text that it cuts into so many tokens, 0 to 1.

    A tokenizer has whole words of the languages that it was made for, and pieces of two letters for
    others. Only for models of alphabets: a sign for a word is a token of its own.
    """
    letters = sum(map(str.isalpha, text))
    if not letters or not tokens:
        return 1.0
    share = (letters / tokens - _FOREIGN_LETTERS) / (_KNOWN_LETTERS - _FOREIGN_LETTERS)
    return min(1.0, max(0.0, share))


def _script(code: int) -> str:
    place = bisect_right(_FIRSTS, code) - 1
    if place < 0:
        return OTHER
    _, last, script = _BLOCKS[place]
    return script if code <= last else OTHER
