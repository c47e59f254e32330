"""What the command line reads, whoever answers: the homes here, or a server far away."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from kb.home.spaces.answers import Shown, SpaceDocs
from kb.home.spaces.spaces import Spaces
from kb.knowledge.answers import Answer, RawSource
from kb.model.asking import DocsAsked, Found, Mark, QuestionAsked, SearchAsked
from kb.model.doc import Scope
from kb.model.search import Filters, SearchResult
from kb.operations.ask import AskInput
from kb.operations.fields import NO_BUDGET
from kb.operations.search import SearchInput

Hear = Callable[[str], None]


class Reader(Protocol):
    """Answers the reading commands. Every method raises KbError for what was asked wrongly."""

    @property
    def has_several(self) -> bool:
        """Whether several spaces answer, so that what is shown should name its own."""
        ...

    def search(self, asked: SearchAsked) -> Found:
        """The best passages."""
        ...

    def answer(self, asked: QuestionAsked, *, hear: Hear | None = None) -> Answer:
        """What the sources say; `hear` may be told parts of it as they come."""
        ...

    def sources(self, asked: QuestionAsked) -> tuple[RawSource, ...]:
        """What an answer would be made of."""
        ...

    def docs(self, asked: DocsAsked) -> SpaceDocs:
        """The docs of a status within limits."""
        ...

    def show(self, ident: str) -> Shown:
        """What an id names."""
        ...


class SpacesReader:
    """Open spaces as a scope reads them."""

    def __init__(self, spaces: Spaces, scope: Scope) -> None:
        self._spaces = spaces
        self._scope = scope

    @property
    def has_several(self) -> bool:
        """Whether more than one space is open."""
        return len(self._spaces.names) > 1

    def search(self, asked: SearchAsked) -> Found:
        """As `Spaces.search`, with marks where they are wanted."""
        request = SearchInput(
            query=asked.query,
            k=asked.k,
            mode=asked.mode,
            tags=asked.tags,
            kinds=asked.kinds,
            doc_ids=asked.doc_ids,
            packs=asked.packs,
            sources=asked.sources,
            with_neighbors=asked.with_neighbors,
            require_entities=asked.require_entities,
            boost_entities=asked.boost_entities,
            min_score=asked.min_score,
            max_tokens=asked.max_tokens or NO_BUDGET,
            explain=asked.explain,
        )
        result = self._spaces.search(request, self._scope)
        return Found(result=result, marks=_marks(result) if asked.with_marks else ())

    def answer(self, asked: QuestionAsked, *, hear: Hear | None = None) -> Answer:
        """As `Spaces.ask`."""
        request = _question(asked)
        return self._spaces.ask(request, self._scope, with_model=asked.with_model, hear=hear)

    def sources(self, asked: QuestionAsked) -> tuple[RawSource, ...]:
        """As `Spaces.raw_sources`."""
        return self._spaces.raw_sources(_question(asked), self._scope)

    def docs(self, asked: DocsAsked) -> SpaceDocs:
        """As `Spaces.docs`."""
        limits = Filters(tags=asked.tags, kinds=asked.kinds, sources=asked.sources)
        return self._spaces.docs(limits, asked.status, asked.limit, self._scope)

    def show(self, ident: str) -> Shown:
        """As `Spaces.show`."""
        return self._spaces.show(ident, self._scope)


def _question(asked: QuestionAsked) -> AskInput:
    said = msgspec.structs.asdict(asked)
    del said["with_model"]
    return AskInput(**said, with_text=True)


def _marks(result: SearchResult) -> tuple[tuple[Mark, ...], ...]:
    from kb.search.index.analysis import highlight_spans, terms

    wanted = terms(result.query) if result.query else []
    return tuple(tuple(highlight_spans(hit.text, wanted)) for hit in result.hits)
