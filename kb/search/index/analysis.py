"""Text analysis: splits documents and queries of any script into the same terms."""

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from kb.search.index.fold import MARKS, folded, folded_in_place

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

ANALYSIS_VERSION: Final = 3
WORD_BYTES_MAX: Final = 60
"""Longer words, and those of this length, are left out."""
_QUERY_CHARS_MAX: Final = 32_768
TERMS_MAX: Final = 256
HAN_BREAK: Final = "|"
"""Stands between two runs of Han, in the field of its characters."""
_START_CHARS: Final = 2
_ASCII_WORD: Final = "[a-z0-9]+"
_PHRASES_MAX: Final = 8
_WORDS_KEPT: Final = 16_384
"""About 150 bytes each."""
_PHRASE_WORDS_MAX: Final = 32
_QUERIES_KEPT: Final = 16
"""One search asks for the words of its query several times."""

_HAN_CHARS: Final = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
# Scripts without spaces between words; and Hangul, which attaches particles to nouns.
_GRAM_CHARS: Final = (
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u0e01-\u0e7f\u0e81-\u0eff\u1000-\u109f\u1780-\u17dd"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\uac00-\ud7a3"  # Hangul
)
_UNSPACED_CHARS: Final = f"{_HAN_CHARS}{_GRAM_CHARS}"
# Patterns are compiled where they are first used: most texts need few of them, and those of many
# characters take 2 to 4 ms each.
_HAN: Final = f"[{_HAN_CHARS}]+"
_RUN: Final = f"(?P<han>[{_HAN_CHARS}]+)|[{_GRAM_CHARS}]+"
# Whole blocks of India, whose vowel signs Python does not count as letters.
_INDIC: Final = "\u0900-\u0963\u0966-\u0dff"
_SPACED_WORD: Final = f"(?:[^\\W_{_UNSPACED_CHARS}{_INDIC}]+|[{_INDIC}{MARKS}]+)+"
# The same where a text has none of these characters.
_SIMPLE_WORD: Final = r"[^\W_]+"
_NOT_SIMPLE_CHARS: Final = f"{_UNSPACED_CHARS}{_INDIC}{MARKS}"
# A noun of one syllable with what Korean attaches to it; longer ones share a bigram with the noun.
_NOUN: Final = (
    "([가-힣])(?:[은는이가을를의에도만와과로께들]|에서는?|에게|에[는도]|으로는?|까지|부터|보다|처럼|마다|조차|밖에"
    "|이나|이[다고라]|이란|이라는|이었다|입니다|한테|하고|들[이은을])"
)
# Where a word of several begins its next one: parseConfig, HTTPServer, but not PDFs.
_CAMEL: Final = r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})"
_CAMEL_WORD: Final = (
    r"(?<![^\W_])[A-Za-z0-9]{1,58}?(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2})[A-Za-z0-9]{0,58}(?![^\W_])"
)
_SYMBOL: Final = (
    r"(?=[A-Za-z_$]*(?:_|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[A-Za-z]\d|\(\)$))"
    r"[A-Za-z_$][\w$]{0,200}(?:\(\))?"
)
# Without it no word is in camel case. Most texts have none, and it takes a tenth of the time.
_HAS_CAMEL: Final = r"[A-Z](?:(?<=[a-z].)|[A-Z][a-z]{2})"
_NAME_CHARS_MAX: Final = 200
_QUOTES: Final = '"“”„«»「」『』'
_QUOTED: Final = f"[{_QUOTES}]([^{_QUOTES}]{{2,400}})[{_QUOTES}]"


def normalize(text: str, *, han_words: bool = True) -> str:
    """Normalize a text so that a tokenizer can split it at non-alphanumeric characters.

    Letters are folded into one form. Runs of Han become dictionary words, long ones together with
    the words inside them, or, without `han_words`, bigrams, which need no dictionary. Runs of other
    unspaced scripts and of Hangul become bigrams. Words in camel case are followed by their parts.
    """
    text = _folded_with_parts(text)
    if not _letters_among(text, _UNSPACED_CHARS):
        return text
    return re.sub(_RUN, _split_run if han_words else _grams_of_run, text)


def _folded_with_parts(text: str) -> str:
    if re.search(_HAS_CAMEL, text):
        text = re.sub(_CAMEL_WORD, _with_parts, text)
    return folded(text)


def _letters_among(text: str, characters: str) -> list[str]:
    """The different characters of a text that a class of characters, as of a pattern, has."""
    if text.isascii():
        return []
    firsts, lasts = _bounds(characters)
    found = []
    for letter in set(text):
        place = bisect_right(firsts, letter) - 1
        if place >= 0 and letter <= lasts[place]:
            found.append(letter)
    return found


@functools.cache
def _bounds(characters: str) -> tuple[list[str], list[str]]:
    """The first characters of the ranges of a class, ascending, and up to where each has letters.

    A range may lie inside another one.
    """
    ranges: list[tuple[str, str]] = []
    place = 0
    while place < len(characters):
        end = place + 2 if characters[place + 1 : place + 2] == "-" else place
        ranges.append((characters[place], characters[end]))
        place = end + 1
    firsts, lasts = zip(*sorted(ranges), strict=True)
    return list(firsts), list(accumulate(lasts, max))


def has_unspaced(text: str) -> bool:
    """Whether a text has letters of scripts without spaces, or of Hangul."""
    return bool(_letters_among(text, _UNSPACED_CHARS))


def camel_words(text: str) -> Iterable[re.Match[str]]:
    """The words in camel case, of which each part is a word, too."""
    return re.finditer(_CAMEL_WORD, text) if re.search(_HAS_CAMEL, text) else ()


def _with_parts(word: re.Match[str]) -> str:
    return f"{word[0]} {re.sub(_CAMEL, ' ', word[0])}"


@functools.lru_cache(_QUERIES_KEPT)
def name_keys(name: str) -> frozenset[str]:
    """The forms of a name that are equal for names which people take for the same.

    Letter case, accents, endings of words and what stands between words make no difference, and
    camel case may be written as one word or as several.
    """
    text = name[:_NAME_CHARS_MAX]
    plain = text.lower()
    spellings = {normalize(plain)}
    if plain != text:
        spellings.add(normalize(re.sub(_CAMEL, " ", text).lower()))
    return frozenset(" ".join(analyzer().analyze(spelling)) for spelling in spellings) - {""}


def is_symbol(name: str) -> bool:
    """Whether a name is one that only programs have: `parse_config`, `parseConfig`, `x2()`."""
    stripped = name.strip()
    return " " not in stripped and re.fullmatch(_SYMBOL, stripped) is not None


def exactly(name: str) -> str:
    """The key of a name that is equal for this spelling alone."""
    return f"={name.strip().removesuffix('()')}"


def _split_run(run: re.Match[str]) -> str:
    return f" {' '.join(_han_words(run[0]))} " if run["han"] else _grams_of_run(run)


def _grams_of_run(run: re.Match[str]) -> str:
    letters = run[0]
    noun = re.fullmatch(_NOUN, letters)
    grams = [letters] if len(letters) < 3 else [a + b for a, b in pairwise(letters)]
    return f" {' '.join([noun[1], *grams] if noun else grams)} "


def _han_words(run: str) -> list[str]:
    import rjieba

    return list(rjieba.cut_for_search(run))


def han_characters(text: str) -> str:
    """Each Han character as a word of its own, with a separator between runs.

    Finds words that the dictionary splits otherwise in a document than in a query.
    """
    if text.isascii():
        return ""
    return f" {HAN_BREAK} ".join(" ".join(run) for run in re.findall(_HAN, folded(text)))


def lone_han(text: str) -> frozenset[str]:
    """The Han characters of a text that stand by themselves, and so are words."""
    if text.isascii():
        return frozenset()
    return frozenset(run for run in re.findall(_HAN, folded(text)) if len(run) == 1)


def is_han(term: str) -> bool:
    """Whether a term consists of Han characters only."""
    return not term.isascii() and re.fullmatch(_HAN, term) is not None


# The words of questions (who, how, does), which tantivy's list of stop words lacks.
_FUNCTION_WORDS: Final = (
    *("what", "which", "who", "whom", "whose", "when", "where", "why", "how"),
    *("am", "were", "been", "being", "do", "does", "did", "done", "doing"),
    *("have", "has", "had", "having", "can", "could", "should", "would", "may", "might"),
    *("must", "shall", "i", "me", "my", "mine", "we", "us", "our", "ours", "you", "your"),
    *("yours", "he", "him", "his", "she", "her", "hers", "its", "them", "theirs", "those"),
    *("here", "about", "from", "than", "so", "too", "very", "just", "also", "any", "some"),
    *("all", "each", "few", "more", "most", "other", "only", "own", "same", "both"),
    *("between", "through", "during", "before", "after", "above", "below", "up", "down"),
    *("out", "off", "over", "under", "again", "further", "once", "get", "got", "much", "many"),
)


@functools.cache
def analyzer(*, drop_stop_words: bool = False, stems: bool = True) -> "TextAnalyzer":
    """An analyzer for normalized text: lower-cases, removes accents, stems English words."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    chain = (
        TextAnalyzerBuilder(Tokenizer.simple())
        .filter(Filter.remove_long(WORD_BYTES_MAX))
        .filter(Filter.lowercase())
        .filter(Filter.ascii_fold())
    )
    if drop_stop_words:
        chain = chain.filter(Filter.stopword("english"))
        chain = chain.filter(Filter.custom_stopword(list(_FUNCTION_WORDS)))
    if stems:
        chain = chain.filter(Filter.stemmer("english"))
    return chain.build()


def spelled_words(text: str) -> list[str]:
    """The words of a text as they are spelled, but for the forms of letters; of Han, bigrams."""
    return analyzer(stems=False).analyze(normalize(text[:_QUERY_CHARS_MAX], han_words=False))


def query_words(query: str, *, stems: bool = True) -> list[str]:
    """The analysed words of a query in order, with repeats, without English stop words.

    Without `stems` they are spelled as in `spelled_words`.
    A query of stop words only keeps them, such as "to be or not to be".
    """
    return list(_query_words(query[:_QUERY_CHARS_MAX], stems=stems))


@functools.lru_cache(_QUERIES_KEPT)
def _query_words(query: str, *, stems: bool) -> tuple[str, ...]:
    text = normalize(query, han_words=stems)
    without_stop_words = analyzer(drop_stop_words=True, stems=stems).analyze(text)
    return tuple(without_stop_words or analyzer(stems=stems).analyze(text))


def is_stop_word(word: str) -> bool:
    """Whether a query leaves this word out, beside others."""
    return not analyzer(drop_stop_words=True, stems=False).analyze(normalize(word))


def terms(query: str) -> list[str]:
    """The distinct terms of a query in order, at most TERMS_MAX."""
    return list(dict.fromkeys(query_words(query)))[:TERMS_MAX]


def phrases(query: str) -> list[list[str]]:
    """The words of each quoted part of a query with two words or more, as they are spelled."""
    if not any(quote in query for quote in _QUOTES):
        return []
    quoted = (match[1] for match in re.finditer(_QUOTED, query[:_QUERY_CHARS_MAX]))
    analysed = (spelled_words(part)[:_PHRASE_WORDS_MAX] for part in quoted)
    return [words for words in analysed if len(words) > 1][:_PHRASES_MAX]


@functools.lru_cache(_WORDS_KEPT)
def terms_of_word(word: str) -> tuple[str, ...]:
    """The analysed terms of one word, of several if it is in camel case."""
    is_plain = word.isascii() and word.islower()
    return tuple(analyzer().analyze(word if is_plain else normalize(word)))


def terms_in(text: str, terms: frozenset[str]) -> frozenset[str]:
    """Which of the analysed terms a text contains.

    For speed only words that start like one of the terms are analysed, and scripts without spaces
    are cut into words for terms of such a script alone.
    """
    if not terms:
        return terms
    starts = {word[:_START_CHARS] for word in terms}
    normal = _normalized_for(text, terms)
    others: list[str] = []
    if not normal.isascii():
        pieces = set(normal.split())
        others = [piece for piece in pieces if not piece.isascii()]
        normal = " ".join(piece for piece in pieces if piece.isascii())
    words = {
        word for word in re.findall(_ASCII_WORD, normal.lower()) if word[:_START_CHARS] in starts
    }
    return terms.intersection(analyzer().analyze(" ".join((*words, *others))))


def terms_held(text: str, terms: frozenset[str]) -> frozenset[str]:
    """As `terms_in`, also those of Han that the dictionary splits otherwise in the text."""
    present = terms_in(text, terms)
    han = {term for term in terms if term not in present and is_han(term)}
    if not han:
        return present
    one_form = folded(text)
    return present | {term for term in han if term in one_form}


def _normalized_for(text: str, terms: frozenset[str]) -> str:
    """As `normalize`, with those words alone that may be among the terms."""
    if not text.isascii() and not any(map(has_unspaced, terms)):
        text = _folded_with_parts(text)
        unspaced = _letters_among(text, _UNSPACED_CHARS)
        return text.translate(dict.fromkeys(map(ord, unspaced), " ")) if unspaced else text
    return normalize(text, han_words=any(map(is_han, terms)))


def highlight_spans(text: str, terms: Iterable[str]) -> list[tuple[int, int]]:
    """The half-open character spans of words of `text` among `terms`; ascending, disjoint.

    `terms` are analysed, as returned by `terms()`.
    """
    term_set = frozenset(terms)
    if not term_set:
        return []
    return _merged(sorted([*_spaced_spans(text, term_set), *_unspaced_spans(text, term_set)]))


def first_highlight(text: str, terms: frozenset[str]) -> int | None:
    """Where the first of the `highlight_spans` begins; None where there is none."""
    firsts = [next(spans(text, terms), None) for spans in (_spaced_spans, _unspaced_spans)]
    return min((span[0] for span in firsts if span), default=None)


def _spaced_spans(text: str, terms: frozenset[str]) -> Iterator[tuple[int, int]]:
    analyse = analyzer().analyze
    is_wanted: dict[str, bool] = {}
    starts = {term[:_START_CHARS] for term in terms}
    is_simple = not _letters_among(text, _NOT_SIMPLE_CHARS)
    for match in re.finditer(_SIMPLE_WORD if is_simple else _SPACED_WORD, text):
        word = match[0]
        if word not in is_wanted:
            # As in `terms_in`; a word with capitals inside may have several parts.
            is_plain = word.isascii() and word[1:].islower()
            is_wanted[word] = (
                not is_plain or word[:_START_CHARS].lower() in starts
            ) and not terms.isdisjoint(analyse(normalize(word)))
        if is_wanted[word]:
            yield match.span()


def _unspaced_spans(text: str, terms: frozenset[str]) -> Iterator[tuple[int, int]]:
    if text.isascii():
        return
    unspaced = [term for term in terms if _letters_among(term, _UNSPACED_CHARS)]
    if not unspaced:
        return
    unspaced.sort(key=len, reverse=True)
    between = f"[{MARKS}]*"
    patterns = [between.join(map(re.escape, term)) + between for term in unspaced]
    # A lookahead also finds overlapping matches.
    for match in re.finditer(f"(?=({'|'.join(patterns)}))", folded_in_place(text)):
        yield match.span(1)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
