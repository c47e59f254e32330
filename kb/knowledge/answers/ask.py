"""Answer a question from the chunks that a search has found."""

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import ConfigError, LlmError, NoModel
from kb.knowledge.answers.answer import NOTHING_FOUND, Answer, RawSource, Sentence, Source
from kb.knowledge.answers.checking import CheckedAnswer, CitationChecker, OnPart
from kb.knowledge.answers.extracts import extracts
from kb.knowledge.answers.prompt import prompt_of
from kb.model.doc import Scope
from kb.model.search import Hit, SearchResult

if TYPE_CHECKING:
    from kb.intake.embed.protocol import Embedder
    from kb.knowledge.llm import Provider

_TOKEN_BYTES: Final = 16


def _random_token() -> str:
    return secrets.token_hex(_TOKEN_BYTES)


class AnswerResources(Struct, frozen=True, kw_only=True):
    """What answering needs, each opened on first use.

    Without a provider, answers are extracts.
    """

    provider: "Callable[[], Provider] | None" = None
    """The language model; None to ask none."""
    embedder: "Callable[[], Embedder] | None" = None
    """Decides on support if the words do not; without it only words decide."""
    knowledge: Callable[[Scope], str] = lambda _: ""
    """The topics' section of a scope's system prompt, in its tags; empty for none."""
    draw: Callable[[], str] = _random_token
    """Makes a random text for delimiters."""


def ask(
    question: str,
    result: SearchResult,
    resources: AnswerResources,
    scope: Scope,
    *,
    with_text: bool = True,
    on_part: OnPart | None = None,
) -> Answer:
    """Answer a question from a search's result for a scope, and from nothing else.

    A model's sentences are checked against what they cite. If the model fails or there is none, the
    answer consists of extracts; after a failure a warning says why. `on_part` gets each checked
    sentence; its parts join to `answer`, unless the model fails on the way. Asks the model once,
    and gives it no tools.
    """
    warnings = tuple(filter(None, (*result.warnings, result.truncated)))
    sources = tuple(_source(n, hit, with_text) for n, hit in enumerate(result.hits, 1))
    checked: CheckedAnswer | None = None
    if sources and resources.provider is not None:
        try:
            knowledge = resources.knowledge(scope)
            checked = _written(
                question, result.hits, resources, resources.provider, knowledge, on_part
            )
        except NoModel:
            # Having no model is a choice, not a failure.
            pass
        except (LlmError, ConfigError) as error:
            reason = str(error) if scope.operator else "it is not available at the moment"
            warnings = (
                *warnings,
                f"these are extracts, because the language model gave no answer: {reason}",
            )
    if checked is None:
        return _extracted(question, result.hits, sources, warnings)
    return Answer(
        query=question,
        answer=checked.text,
        found=any(sentence.supported for sentence in checked.sentences),
        kind="synthesis",
        sentences=checked.sentences,
        sources=sources,
        warnings=(*warnings, *checked.warnings),
    )


def raw_sources(result: SearchResult) -> tuple[RawSource, ...]:
    """The sources of a result, each once, best first, with their chunks."""
    parts: dict[str, list[str]] = {}
    for hit in result.hits:
        parts.setdefault(hit.source, []).append(hit.text)
    return tuple(RawSource(path=path, content="\n\n".join(texts)) for path, texts in parts.items())


def _written(
    question: str,
    hits: Sequence[Hit],
    resources: AnswerResources,
    provider: "Callable[[], Provider]",
    knowledge: str,
    on_part: OnPart | None,
) -> CheckedAnswer:
    """The model's answer, checked. Raises LlmError and ConfigError."""
    model = provider()
    prompt = prompt_of(question, hits, resources.draw, knowledge)
    checker = CitationChecker(hits, resources.embedder)
    if on_part is None:
        return checker.checked([model.complete(prompt.system, prompt.user)])
    return checker.checked(model.stream(prompt.system, prompt.user), on_part)


def _extracted(
    question: str, hits: Sequence[Hit], sources: tuple[Source, ...], warnings: tuple[str, ...]
) -> Answer:
    rows: tuple[Sentence, ...] = extracts(question, hits)
    text = "\n".join(f"{row.text} [{row.citations[0]}]" for row in rows)
    return Answer(
        query=question,
        answer=text or NOTHING_FOUND,
        found=bool(rows),
        kind="extracts",
        sentences=rows,
        sources=sources,
        warnings=warnings,
    )


def _source(n: int, hit: Hit, with_text: bool) -> Source:
    return Source(
        n=n,
        title=hit.title,
        source=hit.source,
        line=hit.line,
        page=hit.page,
        locator=hit.locator,
        doc_id=hit.doc_id,
        chunk_id=hit.chunk_id,
        text=hit.text if with_text else None,
        weak=hit.weak,
    )
