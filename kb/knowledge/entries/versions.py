"""Compare versions by the precedence of Semantic Versioning 2.0.0."""

import re
from typing import Final

VERSION_CHARS_MAX: Final = 128

_NUMBER: Final = re.compile(r"0|[1-9][0-9]*")
_WORD: Final = re.compile(r"[0-9A-Za-z-]+")

_Identifier = tuple[int, int, str]
_Key = tuple[tuple[int, ...], bool, tuple[_Identifier, ...]]


def compare(a: str, b: str) -> int:
    """-1, 0 or 1: whether `a` is lower than `b`, equal, or higher.

    A pre-release is lower than its release, and build metadata make no difference. Raises
    ValueError if one is not a semantic version.
    """
    first, second = _key(a), _key(b)
    return (first > second) - (first < second)


def is_version(text: str) -> bool:
    """Whether it is a semantic version, of at most 128 characters."""
    try:
        _key(text)
    except ValueError:
        return False
    return True


def _key(text: str) -> _Key:
    if len(text) > VERSION_CHARS_MAX:
        raise ValueError(f"{text[:40]!r}… is too long for a version")
    rest, plus, build = text.partition("+")
    core, dash, pre = rest.partition("-")
    numbers = core.split(".")
    words = build.split(".") if plus else []
    is_core = len(numbers) == 3 and all(_NUMBER.fullmatch(number) for number in numbers)
    if not is_core or not all(_WORD.fullmatch(word) for word in words):
        raise ValueError(f"{text!r} is not a semantic version")
    identifiers = pre.split(".") if dash else []
    released = not identifiers
    return (
        tuple(int(number) for number in numbers),
        released,
        tuple(_identifier(text, word) for word in identifiers),
    )


def _identifier(text: str, word: str) -> _Identifier:
    """Numbers sort before words, by their value; a number has no leading zero."""
    if _NUMBER.fullmatch(word):
        return 0, int(word), ""
    if not _WORD.fullmatch(word) or (word.isascii() and word.isdigit()):
        raise ValueError(f"{text!r} is not a semantic version")
    return 1, 0, word
