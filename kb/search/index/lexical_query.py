"""From a person's words to a tantivy query that cannot fail to parse, for none is parsed."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kb.search.index.words import TERMS_MAX, is_han, phrases, query_words

if TYPE_CHECKING:
    from tantivy import Query, Schema

TITLE_WEIGHT: Final = 0.5
_PHRASE_WEIGHT: Final = 2.0
_FIELDS: Final = (("body", 1.0), ("title", TITLE_WEIGHT))
HAN: Final = "han"

DocFreq = Callable[[str, str], int]
Holds = Callable[[str, str], bool]
Rarity = Callable[[str, Sequence[str]], float]


def as_in_the_index(_field: str, _terms: Sequence[str]) -> float:
    """Terms are as rare as the one index says that is read."""
    return 1.0


def words_query(
    schema: "Schema", holds: Holds, query: str, rarity: Rarity = as_in_the_index
) -> "Query | None":
    """Any of the query's words, in body or title, scored by BM25; None where it has no word.

    A word counts as often as it is said. Quoted parts score higher where they stand as such.
    `holds(field, term)` says whether any passage holds a term; `rarity(field, terms)` by what the
    weight of terms that are asked together differs from the one that the index gives them.
    """
    from tantivy import Occur, Query

    counts = Counter(query_words(query))
    if not counts:
        return None
    clauses = []
    for term, times in list(counts.items())[:TERMS_MAX]:
        if is_han(term) and not any(holds(field, term) for field, _ in _FIELDS):
            one = _han_query(schema, term)
            clauses.append((Occur.Should, _weighted(one, rarity(HAN, term))))
            continue
        for field, weight in _FIELDS:
            one = Query.term_query(schema, field, term)
            clauses.append((Occur.Should, _weighted(one, weight * times * rarity(field, (term,)))))
    for words in phrases(query):
        for field, weight in _FIELDS:
            phrase = Query.phrase_query(schema, field, list(words))
            much = weight * _PHRASE_WEIGHT * rarity(field, words)
            clauses.append((Occur.Should, _weighted(phrase, much)))
    return Query.boolean_query(clauses)


def _weighted(query: "Query", weight: float) -> "Query":
    from tantivy import Query

    return query if weight == 1.0 else Query.boost_query(query, weight)


def _han_query(schema: "Schema", term: str) -> "Query":
    """The term's characters in a row: for words that the dictionary parted otherwise."""
    from tantivy import Query

    if len(term) == 1:
        return Query.term_query(schema, HAN, term)
    return Query.phrase_query(schema, HAN, list(term))


def only_where(
    schema: "Schema", query: "Query", field: str, values: frozenset[int] | None
) -> "Query":
    """The query's matches whose number field is among `values`, with unchanged scores."""
    from tantivy import Occur, Query

    if values is None:
        return query
    among = Query.const_score_query(Query.term_set_query(schema, field, sorted(values)), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, among)])
