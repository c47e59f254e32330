"""Quote the best sentences of the chunks, where no model writes an answer."""

from collections.abc import Sequence
from typing import Final

from kb.knowledge.answers.answer import Sentence
from kb.knowledge.answers.sentences import is_prose, plain, sentences
from kb.model.search import Hit
from kb.search.index.analysis import analyzer, normalize, terms

EXTRACTS_MAX: Final = 5
_PER_CHUNK_MAX: Final = 2
_SENTENCES_MAX: Final = 400
_CHARS_MAX: Final = 400


def extracts(question: str, hits: Sequence[Hit]) -> tuple[Sentence, ...]:
    """At most EXTRACTS_MAX sentences of the chunks, in their order, which is the best first.

    They are those with most of the question's words, at most two of a chunk. Where none has any,
    it is the first sentence of the best chunk. Weak chunks are not quoted.
    Equal input gives equal output.
    """
    query_terms = frozenset(terms(question))
    quoted: list[Sentence] = []
    fitting = [(n, hit) for n, hit in enumerate(hits, 1) if not hit.weak]
    for n, hit in fitting:
        quoted += [_quoted(text, n) for text in _best(hit.text, query_terms)]
    return tuple(quoted[:EXTRACTS_MAX]) or _first(fitting)


def _best(text: str, query_terms: frozenset[str]) -> list[str]:
    """The sentences of a chunk with most of the words, in their order."""
    candidates = _prose_sentences(text)
    words = [query_terms.intersection(analyzer().analyze(normalize(row))) for row in candidates]
    order = sorted(range(len(candidates)), key=lambda place: (-len(words[place]), place))
    chosen: list[int] = []
    covered: set[str] = set()
    for place in order[:_PER_CHUNK_MAX]:
        # A second one has to say more than the first.
        if words[place] - covered:
            chosen.append(place)
            covered |= words[place]
    return [candidates[place] for place in sorted(chosen)]


def _first(hits: Sequence[tuple[int, Hit]]) -> tuple[Sentence, ...]:
    for n, hit in hits:
        for text in _prose_sentences(hit.text)[:1]:
            return (_quoted(text, n),)
    return ()


def _prose_sentences(text: str) -> list[str]:
    """The sentences of a chunk on a line each, without headings, tables and code."""
    parts = (text[span.start : span.end] for span in sentences(text)[:_SENTENCES_MAX])
    return [row for part in parts if is_prose(part) and (row := plain(part))]


def _quoted(text: str, n: int) -> Sentence:
    shown = text if len(text) <= _CHARS_MAX else text[:_CHARS_MAX].rstrip() + "…"
    return Sentence(text=shown, citations=(n,), supported=True)
