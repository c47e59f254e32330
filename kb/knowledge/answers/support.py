"""Do passages say what a sentence says of them? Signs of it, cheap and no proof.

What can be compared letter by letter has to be there: numbers, quotations, names. Of the other
words enough must be there, or fewer where the embedding model finds the two near. A negation, or
the same words in another order, is not seen.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kb.knowledge.answers.sentences import plain, sentences
from kb.search.index.analysis import analyzer, normalize, terms

SHARE_SURE: Final = 0.6
SHARE_MIN: Final = 0.2
_COMPARED_MAX: Final = 64
# Of words inside sentences: with more capitals they do not mark names, as in German or in titles.
_CAPITALS_MAX: Final = 0.25

_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_QUOTED: Final = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』]{2,400})[\"“”»」』]|`([^`\n]{2,400})`")
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
# Behind a word or a comma, so that it is not the first of its sentence.
_INNER_WORD: Final = re.compile(r"(?<=[\w,;)] )[^\W\d_][\w’'-]+")
_NUMBER_WORDS: Final = {
    word: str(number)
    for number, word in enumerate(
        (
            *("zero", "one", "two", "three", "four", "five", "six"),
            *("seven", "eight", "nine", "ten", "eleven", "twelve"),
        )
    )
}

IsNear = Callable[[str, Sequence[str]], bool]
"""Whether a text is near in meaning to one of some others; false where no model can tell."""


class Evidence(Struct, frozen=True, kw_only=True):
    """What there is to compare with in one passage."""

    words: frozenset[str]
    """Analysed."""
    numbers: frozenset[str]
    folded: str
    parts: tuple[str, ...]
    """Its first sentences."""
    has_names: bool
    """Whether capitals mark names in it."""


def evidence(text: str) -> Evidence:
    """What a passage, with its title, gives to compare with."""
    inner = _INNER_WORD.findall(text)
    capitals = sum(word[0].isupper() for word in inner)
    words = map(str.lower, _WORD.findall(text))
    said = {_NUMBER_WORDS[word] for word in words if word in _NUMBER_WORDS}
    parts = (plain(text[span.start : span.end]) for span in sentences(text)[:_COMPARED_MAX])
    return Evidence(
        words=frozenset(analyzer().analyze(normalize(text))),
        numbers=frozenset(_numbers(text) | said),
        folded=_folded(text),
        parts=tuple(filter(None, parts)),
        has_names=capitals <= _CAPITALS_MAX * len(inner),
    )


def supports(cited: Sequence[Evidence], sentence: str, is_near: IsNear) -> bool:
    """Whether what is cited, taken together, seems to say a sentence, given without its citations.

    `is_near` is asked only where the words do not tell.
    """
    words = frozenset[str]().union(*(one.words for one in cited))
    numbers = frozenset[str]().union(*(one.numbers for one in cited))
    wanted = terms(sentence)
    if not wanted or not _numbers(sentence) <= numbers:
        return False
    if not all(any(said in one.folded for one in cited) for said in _quotations(sentence)):
        return False
    if all(one.has_names for one in cited) and not words.issuperset(_names(sentence)):
        return False
    share = sum(word in words for word in wanted) / len(wanted)
    if share >= SHARE_SURE or share < SHARE_MIN:
        return share >= SHARE_SURE
    return is_near(sentence, [part for one in cited for part in one.parts])


def _numbers(text: str) -> set[str]:
    """The numbers of a text, without leading zeros and marks between thousands."""
    found: set[str] = set()
    for number in _NUMBER.findall(unicodedata.normalize("NFKC", text)):
        one = number.replace(",", "" if _THOUSANDS.fullmatch(number) else ".")
        found.add(one.lstrip("0") or "0")
    return found


def _quotations(sentence: str) -> list[str]:
    """What a sentence has between quotation marks or backticks, folded."""
    quoted = (match[1] or match[2] for match in _QUOTED.finditer(sentence))
    return [_folded(one).strip(" .,;:!?。，！？") for one in quoted]


def _folded(text: str) -> str:
    straight = unicodedata.normalize("NFKC", text).replace("’", "'")
    return " ".join(straight.casefold().split())


def _names(sentence: str) -> set[str]:
    """The analysed words that a capital marks as names; the first word of a sentence is none."""
    names = " ".join(word for word in _INNER_WORD.findall(sentence) if word[0].isupper())
    return set(analyzer(drop_stop_words=True).analyze(normalize(names)))
