"""Which entities does a text mention?"""

import re
from typing import Final

from kb.intake.entities.keys import fold_key
from kb.intake.entities.patterns import (
    EMAIL_DOMAIN,
    EMAIL_LOCAL_CHARS,
    HASHTAG,
    MENTION,
    SIGNAL,
    URL,
    URL_CHARS_MAX,
    URL_RUN,
)
from kb.model.text import EntityKind, Mention

MENTIONS_MAX: Final = 1000
"""A text with more distinct entities is a list of them, so the rest is left out."""

_Hit = tuple[EntityKind | None, int, int]

_TRAILING: Final = ".,;:!?'*_~|\\…({"
_BRACKETS: Final = {"(": ")", "{": "}"}
_LOCAL_CHARS_MAX: Final = 64
_LABEL_CHARS_MAX: Final = 63


def extract(text: str) -> list[Mention]:
    """Each distinct entity once, in order of its first appearance; at most MENTIONS_MAX.

    Links are http or https; the text inside a link has no other entities. Time is linear in the
    length of the text.
    """
    by_key: dict[str, Mention] = {}
    seen: set[tuple[str, str]] = set()
    at, signals = 0, re.compile(SIGNAL)
    while len(by_key) < MENTIONS_MAX and (signal := signals.search(text, at)):
        here = signal.start()
        match text[here]:
            case "#" | "＃":
                kind, start, end = _hashtag(text, here)
            case "@" | "＠":
                kind, start, end = _at_sign(text, here, at)
            case _:
                kind, start, end = _url(text, here)
        at = max(end, here + 1)
        if kind is None or (kind, text[start:end]) in seen:
            continue
        surface = text[start:end]
        seen.add((kind, surface))
        key = fold_key(kind, surface)
        by_key.setdefault(key, Mention(kind=kind, surface=surface, key=key))
    return list(by_key.values())


def _url(text: str, here: int) -> _Hit:
    """A link, up to a character that ends it, an unopened bracket, or its maximum length."""
    match = re.compile(URL).match(text, here)
    if match is None:
        return None, here, here
    at = match.end()
    most = min(len(text), here + URL_CHARS_MAX)
    closers, runs = list[str](), re.compile(URL_RUN)
    while at < most:
        if run := runs.match(text, at, most):
            at = run.end()
        elif text[at] in _BRACKETS:
            closers.append(_BRACKETS[text[at]])
            at += 1
        elif closers and text[at] == closers[-1]:
            closers.pop()
            at += 1
        else:
            break
    return "url", here, here + len(text[here:at].rstrip(_TRAILING))


def _in_word(text: str, here: int, joining: str) -> bool:
    """Whether the mark at `here` is inside a word; CJK text has no spaces to show it."""
    if not here:
        return False
    before = text[here - 1]
    return before in joining or (before < "\u2e80" and before.isalnum())


def _hashtag(text: str, here: int) -> _Hit:
    if _in_word(text, here, "_&#＃/"):
        return None, here, here
    match = re.compile(HASHTAG).match(text, here)
    if match is None:
        return None, here, here
    name = match.group(1).rstrip("-_")
    if not any(sign.isalpha() for sign in name):
        return None, here, match.end()
    return "hashtag", here, here + 1 + len(name)


def _at_sign(text: str, here: int, floor: int) -> _Hit:
    """An e-mail address if a name is before the sign, else a mention."""
    before = text[max(floor, here - _LOCAL_CHARS_MAX) : here]
    name = before[len(before.rstrip(EMAIL_LOCAL_CHARS)) :].lstrip(".-%+")
    if name:
        domain = re.compile(EMAIL_DOMAIN).match(text, here)
        length = len(_domain(domain.group(1))) if domain else 0
        return ("email", here - len(name), here + 1 + length) if length else (None, here, here)
    if _in_word(text, here, "@＠_/"):
        return None, here, here
    match = re.compile(MENTION).match(text, here)
    name = match.group(1).rstrip(".-") if match else ""
    if not name or name[0] in ".-" or name.isdigit():
        return None, here, here
    return "mention", here, here + 1 + len(name)


def _domain(text: str) -> str:
    """The domain at the start of `text`, or nothing: labels with a top one of letters."""
    domain = text.rstrip(".-")
    labels = domain.split(".")
    good = len(labels) > 1 and all(
        0 < len(label) <= _LABEL_CHARS_MAX and label[0] != "-" != label[-1] for label in labels
    )
    return domain if good and labels[-1].isalpha() and len(labels[-1]) > 1 else ""
