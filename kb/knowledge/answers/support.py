"""Do chunks support a sentence that cites them? Cheap signs of it, and no proof.

The chunks must have all of its numbers, quotations and names, letter by letter. Of its other
words they must have enough, or fewer where the embedding model finds the two similar. Negation
and word order are not seen.
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
    """What there is to compare with in one chunk."""

    words: frozenset[str]
    """Analysed."""
    numbers: frozenset[str]
    folded: str
    parts: tuple[str, ...]
    """Its first sentences."""
    has_names: bool
    """Whether capitals mark names in it."""


def evidence(text: str) -> Evidence:
    """What a chunk, with its title, gives to compare with."""
    inner = _INNER_WORD.findall(text)
    capitals = sum(word[0].isupper() for word in inner)
    words = map(str.lower, _WORD.findall(text))
    spelled_out = {_NUMBER_WORDS[word] for word in words if word in _NUMBER_WORDS}
    parts = (plain(text[span.start : span.end]) for span in sentences(text)[:_COMPARED_MAX])
    return Evidence(
        words=frozenset(analyzer().analyze(normalize(text))),
        numbers=frozenset(_numbers(text) | spelled_out),
        folded=_folded(text),
        parts=tuple(filter(None, parts)),
        has_names=capitals <= _CAPITALS_MAX * len(inner),
    )


def supports(cited: Sequence[Evidence], sentence: str, is_near: IsNear) -> bool:
    """Whether what is cited, taken together, seems to say a sentence, given without its citations.

    `is_near` is asked only where the words do not tell.
    """
    words = frozenset[str]().union(*(chunk.words for chunk in cited))
    numbers = frozenset[str]().union(*(chunk.numbers for chunk in cited))
    sentence_terms = terms(sentence)
    if not sentence_terms or not _numbers(sentence) <= numbers:
        return False
    if not all(
        any(quotation in chunk.folded for chunk in cited) for quotation in _quotations(sentence)
    ):
        return False
    if all(chunk.has_names for chunk in cited) and not words.issuperset(_names(sentence)):
        return False
    share = sum(word in words for word in sentence_terms) / len(sentence_terms)
    if share >= SHARE_SURE or share < SHARE_MIN:
        return share >= SHARE_SURE
    return is_near(sentence, [part for chunk in cited for part in chunk.parts])


def _numbers(text: str) -> set[str]:
    """The numbers of a text, without leading zeros and marks between thousands."""
    numbers: set[str] = set()
    for number in _NUMBER.findall(unicodedata.normalize("NFKC", text)):
        plain_number = number.replace(",", "" if _THOUSANDS.fullmatch(number) else ".")
        numbers.add(plain_number.lstrip("0") or "0")
    return numbers


def _quotations(sentence: str) -> list[str]:
    """What a sentence has between quotation marks or backticks, folded."""
    quoted = (match[1] or match[2] for match in _QUOTED.finditer(sentence))
    return [_folded(text).strip(" .,;:!?。，！？") for text in quoted]


def _folded(text: str) -> str:
    straight = unicodedata.normalize("NFKC", text).replace("’", "'")
    return " ".join(straight.casefold().split())


def _names(sentence: str) -> set[str]:
    """The analysed words that a capital marks as names; the first word of a sentence is none."""
    names = " ".join(word for word in _INNER_WORD.findall(sentence) if word[0].isupper())
    return set(analyzer(drop_stop_words=True).analyze(normalize(names)))
