"""Builds a tantivy query from a query text. Nothing is parsed, so no text is an error."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kb.search.index.analysis import (
    HAN_BREAK,
    TERMS_MAX,
    exactly,
    han_characters,
    is_han,
    is_symbol,
    lone_han,
    name_keys,
    phrases,
    query_words,
    spelled_words,
)

if TYPE_CHECKING:
    from tantivy import Query, Schema

TITLE_WEIGHT: Final = 0.5
_PHRASE_WEIGHT: Final = 2.0
_NAME_WEIGHT: Final = 0.5
_FOLDERS_WEIGHT: Final = 0.1
_FIELDS: Final = (
    ("body", 1.0),
    ("title", TITLE_WEIGHT),
    ("name", _NAME_WEIGHT),
    ("folders", _FOLDERS_WEIGHT),
)
SPELLED_WEIGHT: Final = 0.5
_PLAIN_SHARE: Final = 0.5
HAN: Final = "han"
SPELLED: Final = "spelled"
# In a word of ASCII: perhaps a letter or a digit.
_LETTER: Final = "[0-9a-z\u0080-\u07ff]?"
# tantivy refuses patterns of more than a thousand states.
_PATTERN_LETTERS_MAX: Final = 16

DocFreq = Callable[[str, str], int]
HasTerm = Callable[[str, str], bool]
WeightFactor = Callable[[str, Sequence[str]], float]
Holding = Callable[["Schema"], "Query | None"]
"""Makes a query that matches the chunks which hold something."""


def unchanged_weight(_field: str, _terms: Sequence[str]) -> float:
    """The factor 1: the index's own statistics apply."""
    return 1.0


def build_query(
    schema: "Schema",
    has_term: HasTerm,
    query: str,
    weight_factor: WeightFactor = unchanged_weight,
    called_score: float = 0.0,
) -> "Query | None":
    """Matches any of the query's words in body or title, scored by BM25; None without words.

    A repeated word counts repeatedly. A Han character that stands alone also counts inside words.
    Quoted parts also match as phrases, with a higher weight.
    The first chunk of a doc whose name is the query gets `called_score` more, as does a chunk of
    source code that defines it; of that less if the query is a word that anybody could mean.
    `has_term(field, term)` tells whether any chunk contains a term. `weight_factor(field, terms)`
    is a factor for the index's own weight of a term, or of the terms of a phrase together.
    """
    from tantivy import Occur, Query

    counts = Counter(query_words(query))
    if not counts:
        return None
    clauses = []
    lone = lone_han(query)
    for term, times in list(counts.items())[:TERMS_MAX]:
        if term in lone or (
            is_han(term) and not any(has_term(field, term) for field, _ in _FIELDS)
        ):
            clause = _han_query(schema, term)
            clauses.append((Occur.Should, _boosted(clause, weight_factor(HAN, term))))
            continue
        for field, weight in _FIELDS:
            clause = Query.term_query(schema, field, term)
            boost = weight * times * weight_factor(field, (term,))
            clauses.append((Occur.Should, _boosted(clause, boost)))
    spelled = Counter(query_words(query, stems=False))
    for term, times in list(spelled.items())[:TERMS_MAX]:
        clause = Query.term_query(schema, SPELLED, term)
        boost = SPELLED_WEIGHT * times * weight_factor(SPELLED, (term,))
        clauses.append((Occur.Should, _boosted(clause, boost)))
    if keys := sorted(name_keys(query)):
        is_plain = not is_symbol(query)
        for field, names, share in (
            ("called", keys, 1.0),
            ("defines", keys, _PLAIN_SHARE if is_plain else 1.0),
            ("defines", [exactly(query)], _PLAIN_SHARE),
        ):
            # Mostly there is none. Without a clause that is no term, tantivy passes over the chunks
            # whose terms cannot bring them among the best, which takes a seventh of the time.
            if not any(has_term(field, name) for name in names):
                continue
            is_called = Query.term_set_query(schema, field, names)
            score = share * called_score
            clauses.append((Occur.Should, Query.const_score_query(is_called, score)))
    for words in phrases(query):
        phrase = Query.phrase_query(schema, SPELLED, list(words))
        boost = _PHRASE_WEIGHT * weight_factor(SPELLED, words)
        clauses.append((Occur.Should, _boosted(phrase, boost)))
    return Query.boolean_query(clauses)


def _boosted(query: "Query", weight: float) -> "Query":
    from tantivy import Query

    return query if weight == 1.0 else Query.boost_query(query, weight)


def _han_query(schema: "Schema", term: str) -> "Query":
    """The phrase of the term's characters: for words that the dictionary split otherwise."""
    from tantivy import Query

    if len(term) == 1:
        return Query.term_query(schema, HAN, term)
    return Query.phrase_query(schema, HAN, list(term))


def called_holders(name: str) -> Holding:
    """For the first chunks of docs that go by a name."""

    def query(schema: "Schema") -> "Query | None":
        from tantivy import Query

        keys = sorted(name_keys(name))
        return Query.term_set_query(schema, "called", keys) if keys else None

    return query


def definition_holders(name: str) -> Holding:
    """For chunks of source code that define a symbol, spelled like this."""

    def query(schema: "Schema") -> "Query | None":
        from tantivy import Query

        is_there = is_symbol(name)
        return Query.term_query(schema, "defines", exactly(name)) if is_there else None

    return query


def phrase_holders(phrase: str) -> Holding:
    """For chunks with these words in this order, as they are spelled.

    Of Han each run of characters counts by itself, since a dictionary splits it by its context.
    """

    def query(schema: "Schema") -> "Query | None":
        from tantivy import Query

        runs = han_characters(phrase).split(HAN_BREAK)
        parts = [_han_query(schema, "".join(run.split())) for run in runs if run.strip()]
        words = [word for word in spelled_words(phrase) if not (parts and is_han(word))]
        if len(words) > 1 and not parts:
            return Query.phrase_query(schema, SPELLED, list(words))
        return _all_of([*parts, *(Query.term_query(schema, SPELLED, word) for word in words)])

    return query


def title_holders(words: str) -> Holding:
    """For the chunks of docs whose title has all of these words."""

    def query(schema: "Schema") -> "Query | None":
        from tantivy import Query

        return _all_of([Query.term_query(schema, "title", word) for word in query_words(words)])

    return query


def near_holders(word: str, distance: int, *, has_han: bool = False) -> Holding:
    """For chunks with a word that differs by so many letters or, for 0, begins like it.

    `word` has small ASCII letters alone. With `has_han`, which is faster where there is much Han,
    another letter is one of UTF-8's two bytes at most, of an alphabet: no word has letters of a
    script without spaces beside Latin ones.
    """

    def query(schema: "Schema") -> "Query":
        from tantivy import Query

        if distance == 1 and len(word) <= _PATTERN_LETTERS_MAX and has_han:
            return Query.regex_query(schema, SPELLED, _one_edit(word))
        return Query.fuzzy_term_query(schema, SPELLED, word, distance, True, not distance)

    return query


def _one_edit(word: str) -> str:
    """The pattern of a word and of all that are one edit from it.

    tantivy's own query for them tries each Han character in place of the first letter, which takes
    5 ms. Without Han it takes a tenth of one, and this pattern up to 2.
    """
    places = range(len(word))
    kinds = {word[:i] + _LETTER + word[i:] for i in range(len(word) + 1)}
    kinds |= {word[:i] + _LETTER + word[i + 1 :] for i in places}
    kinds |= {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in places[:-1]}
    return "|".join(sorted(kinds))


def _all_of(parts: "Sequence[Query]") -> "Query | None":
    from tantivy import Occur, Query

    return Query.boolean_query([(Occur.Must, part) for part in parts]) if parts else None


def restrict_to(
    schema: "Schema", query: "Query", field: str, values: frozenset[int] | None
) -> "Query":
    """The query's matches whose number field has one of the values; scores do not change."""
    from tantivy import Occur, Query

    if values is None:
        return query
    allowed = Query.const_score_query(Query.term_set_query(schema, field, sorted(values)), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, allowed)])
