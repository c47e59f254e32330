"""Builds a tantivy query from a query text. Nothing is parsed, so no text is an error."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kb.search.index.analysis import TERMS_MAX, is_han, name_keys, phrases, query_words

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
HAN: Final = "han"

DocFreq = Callable[[str, str], int]
HasTerm = Callable[[str, str], bool]
WeightFactor = Callable[[str, Sequence[str]], float]


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

    A repeated word counts repeatedly. Quoted parts also match as phrases, with a higher weight.
    The first chunk of a doc whose name is the query gets `called_score` more.
    `has_term(field, term)` tells whether any chunk contains a term. `weight_factor(field, terms)`
    is a factor for the index's own weight of a term, or of the terms of a phrase together.
    """
    from tantivy import Occur, Query

    counts = Counter(query_words(query))
    if not counts:
        return None
    clauses = []
    for term, times in list(counts.items())[:TERMS_MAX]:
        if is_han(term) and not any(has_term(field, term) for field, _ in _FIELDS):
            clause = _han_query(schema, term)
            clauses.append((Occur.Should, _boosted(clause, weight_factor(HAN, term))))
            continue
        for field, weight in _FIELDS:
            clause = Query.term_query(schema, field, term)
            boost = weight * times * weight_factor(field, (term,))
            clauses.append((Occur.Should, _boosted(clause, boost)))
    if keys := sorted(name_keys(query)):
        is_called = Query.term_set_query(schema, "called", keys)
        clauses.append((Occur.Should, Query.const_score_query(is_called, called_score)))
    for words in phrases(query):
        for field, weight in _FIELDS:
            phrase = Query.phrase_query(schema, field, list(words))
            boost = weight * _PHRASE_WEIGHT * weight_factor(field, words)
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


def restrict_to(
    schema: "Schema", query: "Query", field: str, values: frozenset[int] | None
) -> "Query":
    """The query's matches whose number field has one of the values; scores do not change."""
    from tantivy import Occur, Query

    if values is None:
        return query
    allowed = Query.const_score_query(Query.term_set_query(schema, field, sorted(values)), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, allowed)])
