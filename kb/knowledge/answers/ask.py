"""A question and what was found for it become an answer."""

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import ConfigError, LlmError, NoModel
from kb.knowledge.answers.answer import NOTHING_FOUND, Answer, RawSource, Sentence, Source
from kb.knowledge.answers.checking import Checked, Checker, Hear
from kb.knowledge.answers.extracts import extracts
from kb.knowledge.answers.prompt import prompt_of
from kb.model.doc import Scope
from kb.model.search import Hit, SearchResult

if TYPE_CHECKING:
    from kb.intake.embed.protocol import Embedder
    from kb.knowledge.llm import Provider

_TOKEN_BYTES: Final = 16


def _drawn() -> str:
    return secrets.token_hex(_TOKEN_BYTES)


class Means(Struct, frozen=True, kw_only=True):
    """What an answer is made with, each opened when it is needed; without any, of extracts."""

    provider: "Callable[[], Provider] | None" = None
    """The language model; None where none is to be asked."""
    embedder: "Callable[[], Embedder] | None" = None
    """The second sign of support; without it words alone decide."""
    knowledge: Callable[[], str] = str
    """What an operator's model is to know from the start, in its tags; empty for nothing."""
    draw: Callable[[], str] = _drawn
    """A new text that nobody can guess, for delimiters."""


def ask(
    question: str,
    found: SearchResult,
    means: Means,
    scope: Scope,
    *,
    with_text: bool = True,
    hear: Hear | None = None,
) -> Answer:
    """Answer a question from what was found for a scope, which nothing else has a part in.

    A model's sentences are checked against what they cite; where it fails or there is none, the
    answer is extracts, and for a failure a warning says why. With `hear` the model's sentences are
    told one by one, checked; its parts join to `answer`, unless the model fails on the way. Asks
    the model once, and gives it no tools.
    """
    said = tuple(filter(None, (*found.warnings, found.truncated)))
    sources = tuple(_source(n, hit, with_text) for n, hit in enumerate(found.hits, 1))
    checked: Checked | None = None
    if sources and means.provider is not None:
        try:
            known = means.knowledge() if scope.operator else ""
            checked = _written(question, found.hits, means, means.provider, known, hear)
        except NoModel:
            # That there is none was somebody's choice, and no failure.
            pass
        except (LlmError, ConfigError) as error:
            reason = str(error) if scope.operator else "it is not available at the moment"
            said = (*said, f"these are extracts, for the language model gave no answer: {reason}")
    if checked is None:
        return _extracted(question, found.hits, sources, said)
    return Answer(
        query=question,
        answer=checked.text,
        found=any(one.supported for one in checked.sentences),
        kind="synthesis",
        sentences=checked.sentences,
        sources=sources,
        warnings=(*said, *checked.warnings),
    )


def raw_sources(found: SearchResult) -> tuple[RawSource, ...]:
    """The sources of what was found, each once and the best first, with what was found of them."""
    parts: dict[str, list[str]] = {}
    for hit in found.hits:
        parts.setdefault(hit.source, []).append(hit.text)
    return tuple(RawSource(path=path, content="\n\n".join(each)) for path, each in parts.items())


def _written(
    question: str,
    hits: Sequence[Hit],
    means: Means,
    provider: "Callable[[], Provider]",
    known: str,
    hear: Hear | None,
) -> Checked:
    """What the model writes, checked. Raises LlmError and ConfigError."""
    model = provider()
    prompt = prompt_of(question, hits, means.draw, known)
    checker = Checker(hits, means.embedder)
    if hear is None:
        return checker.checked([model.complete(prompt.system, prompt.user)])
    return checker.checked(model.stream(prompt.system, prompt.user), hear)


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
        doc_id=hit.doc_id,
        chunk_id=hit.chunk_id,
        text=hit.text if with_text else None,
        weak=hit.weak,
    )
