"""Folds letters into one form: what a reader takes for one letter, however it is written.

Compatibility forms (full and half width, ligatures) are unified by NFKC, and what it leaves is
folded here: marks that a writer may leave out, forms of one letter, digits of all scripts, and
traditional, simplified and Japanese forms of Han. Accents of Latin letters and letter case are the
analyser's business. Vowel marks that no writer leaves out stay (Indic, Thai).
"""

import functools
import unicodedata
from pathlib import Path
from typing import Final

_HAN_FORMS: Final = Path(__file__).with_name("han_forms.txt")
# What may be left out: accents, points, tone marks, stretched letters, joiners, soft hyphens. A
# tokenizer would split words at most of them.
_MARK_RANGES: Final = (
    *((0x00AD, 0x00AD), (0x200D, 0x200D), (0x2060, 0x2060), (0xFEFF, 0xFEFF), (0xFE00, 0xFE0F)),
    *((0x0300, 0x036F), (0x0483, 0x0487), (0x3099, 0x309A)),
    # Hebrew, Arabic.
    *((0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7)),
    *((0x0610, 0x061A), (0x0640, 0x0640), (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC)),
    *((0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED)),
    # Nuktas and viramas of India.
    *((0x093C, 0x093C), (0x094D, 0x094D), (0x0951, 0x0954), (0x09BC, 0x09BC), (0x09CD, 0x09CD)),
    *((0x0A3C, 0x0A3C), (0x0A4D, 0x0A4D), (0x0ABC, 0x0ABC), (0x0ACD, 0x0ACD), (0x0B3C, 0x0B3C)),
    *((0x0B4D, 0x0B4D), (0x0BCD, 0x0BCD), (0x0C4D, 0x0C4D), (0x0CBC, 0x0CBC), (0x0CCD, 0x0CCD)),
    *((0x0D4D, 0x0D4D), (0x0DCA, 0x0DCA)),
    # Tones and killers of Thai, Lao, Myanmar and Khmer.
    *((0x0E47, 0x0E4C), (0x0E4E, 0x0E4E), (0x0EC8, 0x0ECC), (0x0ECE, 0x0ECE)),
    *((0x1037, 0x1037), (0x1039, 0x103A), (0x17C9, 0x17D3)),
)
MARKS: Final = "".join(f"{chr(first)}-{chr(last)}" for first, last in _MARK_RANGES)
"""For a character class of a regular expression."""
_DIGIT_ZEROS: Final = (
    *(0x0660, 0x06F0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66),
    *(0x0E50, 0x0ED0, 0x1040, 0x17E0),
)
_GREEK: Final = (range(0x0386, 0x03CF), range(0x1F00, 0x1FFF))
_ONE_FORM: Final = {
    "ς": "σ",
    "ё": "е",
    "Ё": "Е",
    "İ": "I",
    **dict.fromkeys("أإآٱ", "ا"),
    "ى": "ي",
    "ی": "ي",
    "ک": "ك",
    "ہ": "ه",
    "ة": "ه",
    "ँ": "ं",
}
# Before another consonant a nasal is written as a letter or as a dot.
_NASALS: Final = ("ङ्", "ञ्", "ण्", "न्", "म्")
# A Thai or Lao vowel that NFKC takes apart, so that a tone mark could stand inside; and one that
# people type as two of another.
_REJOINED: Final = (
    ("\u0e4d\u0e32", "\u0e33"),
    ("\u0ecd\u0eb2", "\u0eb3"),
    ("\u0e40\u0e40", "\u0e41"),
)


def folded(text: str) -> str:
    """The text in the forms that words are compared in; ASCII stays as it is."""
    if text.isascii():
        return text
    clean = text.encode("utf-8", "replace").decode("utf-8")
    unified = unicodedata.normalize("NFKC", clean)
    if "\u094d" in unified:
        for nasal in _NASALS:
            unified = unified.replace(nasal, "ं")
    one_form = _replaced(unified, _forms())
    for parts, whole in _REJOINED:
        one_form = one_form.replace(parts, whole)
    return one_form


def folded_in_place(text: str) -> str:
    """The text with each character of Han and kana in its one form, all at the same places."""
    return text if text.isascii() else _replaced(text, _han_and_kana())


def _replaced(text: str, forms: dict[str, str]) -> str:
    """As `str.translate`, which looks each letter up: most texts have few letters with forms.

    No form holds a letter that has another one, so the order makes no difference.
    """
    for letter in forms.keys() & set(text):
        text = text.replace(letter, forms[letter])
    return text


@functools.cache
def _forms() -> dict[str, str]:
    forms = dict(_ONE_FORM)
    for first, last in _MARK_RANGES:
        forms.update(dict.fromkeys(map(chr, range(first, last + 1)), ""))
    for zero in _DIGIT_ZEROS:
        forms.update({chr(zero + digit): str(digit) for digit in range(10)})
    for letters in _GREEK:
        for code in letters:
            base = unicodedata.normalize("NFD", chr(code))[0]
            if base != chr(code):
                forms[chr(code)] = base
    return forms | _han_and_kana()


@functools.cache
def _han_and_kana() -> dict[str, str]:
    old, new = _HAN_FORMS.read_text(encoding="utf-8").splitlines()
    forms = dict(zip(old, new, strict=True))
    # Who writes りんご also writes リンゴ.
    kana = (*range(0x3041, 0x3097), 0x309D, 0x309E)
    forms.update({chr(code): chr(code + 0x60) for code in kana})
    return forms
