"""How well does a home answer questions whose docs are known? Would other settings do better?"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from kb.errors import KbError, UsageError
from kb.model.config import RerankSettings, SearchSettings, Settings
from kb.model.decoding import convert, decode_json
from kb.model.doc import Scope
from kb.model.search import SearchMode, SearchRequest
from kb.search.evaluation import RECALL_DEPTH, Scores, mean, place_of_first, scores

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.search.engine import Searcher

QUESTIONS_MAX: Final = 10_000
_CHANGED_MAX: Final = 50
_CHUNKS: Final = 2 * RECALL_DEPTH
"""A doc may have several chunks among the first."""


class Question(Struct, frozen=True, kw_only=True):
    """A question, and what should answer it."""

    query: str
    docs: Mapping[str, int] | list[str]
    """Ids or paths of docs, of which each may have a grade; 1 without."""


class Variant(Struct, frozen=True, kw_only=True):
    """One way of searching."""

    name: str
    mode: SearchMode
    settings: SearchSettings
    reranker: RerankSettings
    rerank: bool | None = None
    """As a request says it."""
    model: str | None = None
    """Another model than the home's, by the word for it that `kb embedder set` takes."""


class EvalRow(Struct, frozen=True, kw_only=True):
    """How well one way of searching answers."""

    variant: str
    ndcg_at_10: float
    recall_at_100: float
    mrr_at_10: float
    query_ms_p50: float
    better: int
    """Questions with a higher nDCG than in the first row."""
    worse: int


class ChangedQuestion(Struct, frozen=True, kw_only=True):
    """A question whose first right doc is at another place than in the first row."""

    query: str
    variant: str
    before: int | None
    """The place of the doc; None behind the hundredth."""
    after: int | None


class EvalReport(Struct, frozen=True, kw_only=True):
    """How well the ways of searching answer the questions."""

    questions: int
    """Those that count: docs that are not here are left out, and so are questions without any."""
    rows: list[EvalRow]
    """The first is what `kb search` does now."""
    changed: list[ChangedQuestion]
    """At most 50, the largest changes first."""
    problems: list[str]


class _Asked(Struct, frozen=True, kw_only=True):
    query: str
    grades: dict[str, int]


def questions_of(lines: Iterable[str]) -> Iterator[Question | str]:
    """The questions of a file, one JSON document a line; for a line that is none, what is wrong."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if number > QUESTIONS_MAX:
            yield f"more than {QUESTIONS_MAX:,} lines; the others are left out"
            return
        try:
            yield decode_json(line, Question)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            yield f'line {number} is not {{"query": "...", "docs": ["..."]}}: {error}'


def gathered(app: "App") -> list[Question]:
    """The questions that were answered on the page, by their words, with the paths of docs."""
    from kb.store import docs, questions

    sources: dict[str, list[str]] = {}
    with app.store.read() as txn:
        for question in sorted(questions.kept(txn), key=lambda one: (one.query, one.place)):
            doc = docs.latest_of(txn, question.place)
            if doc is not None and doc.status == "active" and doc.visible_to(app.caller):
                named = doc.source if doc.kind == "file" else doc.doc_id
                sources.setdefault(question.query, []).append(named)
    return [Question(query=query, docs=named) for query, named in sources.items()]


def variants_of(
    settings: Settings, tried: Sequence[str], models: Sequence[str] = ()
) -> list[Variant]:
    """What `kb search` does, each of its legs alone, and it with other settings and other models.

    Each of `tried` is settings of the section `search` with commas between, as `rrf_k=60`;
    `rerank=true` reranks, and `rerank.candidates=50` is a setting of that section. Raises
    UsageError.
    """
    plain = Variant(
        name="as it is set", mode="hybrid", settings=settings.search, reranker=settings.rerank
    )
    changed = partial(msgspec.structs.replace, plain)
    return [
        plain,
        changed(name="words alone", mode="lexical", rerank=False),
        changed(name="meaning alone", mode="dense", rerank=False),
        *(_with_values(plain, text) for text in tried),
        *(changed(name=f"model {model}", model=model) for model in models),
    ]


def _with_values(plain: Variant, text: str) -> Variant:
    from kb.model.config.load import parse_value

    search: dict[str, Any] = msgspec.to_builtins(plain.settings)
    reranker: dict[str, Any] = msgspec.to_builtins(plain.reranker)
    values = {
        **{f"search.{name}": (search, name) for name in search},
        **{f"rerank.{name}": (reranker, name) for name in reranker},
    }
    wanted: dict[str, Any] = {"rerank": plain.rerank}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        name = key.strip()
        table, field = wanted, name
        if name not in wanted:
            full = name if "." in name else f"search.{name}"
            if full not in values:
                known = ", ".join((*search, *wanted, *(f"rerank.{name}" for name in reranker)))
                raise UsageError(f"no setting {full}; there are {known}")
            table, field = values[full]
        table[field] = parse_value(value.strip())
    try:
        return msgspec.structs.replace(
            plain,
            name=text,
            settings=convert(search, SearchSettings),
            reranker=convert(reranker, RerankSettings),
            rerank=convert(wanted["rerank"], bool | None),
        )
    except msgspec.ValidationError as error:
        raise UsageError(f"{text}: {error}") from error


def run(
    app: "App",
    questions: Iterable[Question | str],
    variants: Sequence[Variant],
) -> EvalReport:
    """Ask every question in every way. Raises UsageError where no question counts.

    Other models embed every chunk first. Raises ModelMissing where there is no such.
    """
    problems: list[str] = []
    asked = list(_asked(app, questions, problems))
    if not asked:
        raise UsageError("; ".join(["no question has a doc that is here", *problems[:3]]))
    first: list[Scores] = []
    places: list[int | None] = []
    rows: list[EvalRow] = []
    changed: list[ChangedQuestion] = []
    for variant in variants:
        with _searcher(app, variant) as searcher:
            found, milliseconds, at = _measured(searcher, asked, variant, problems, app.caller)
        first, places = first or found, places or at
        pairs = [(now.ndcg_at_10, then.ndcg_at_10) for now, then in zip(found, first, strict=True)]
        rows.append(
            EvalRow(
                variant=variant.name,
                **msgspec.structs.asdict(mean(found)),
                query_ms_p50=sorted(milliseconds)[len(milliseconds) // 2],
                better=sum(now > then for now, then in pairs),
                worse=sum(now < then for now, then in pairs),
            )
        )
        changed += [
            ChangedQuestion(query=one.query, variant=variant.name, before=before, after=after)
            for one, before, after in zip(asked, places, at, strict=True)
            if before != after
        ]
    changed.sort(key=lambda row: -abs((row.before or RECALL_DEPTH) - (row.after or RECALL_DEPTH)))
    return EvalReport(
        questions=len(asked), rows=rows, changed=changed[:_CHANGED_MAX], problems=problems
    )


def _asked(
    app: "App", questions: Iterable[Question | str], problems: list[str]
) -> Iterator[_Asked]:
    from kb.operations.locate import id_named, place_from_here

    home = app.opened()
    for question in questions:
        if isinstance(question, str):
            problems.append(question)
            continue
        named = question.docs
        grades = named if isinstance(named, Mapping) else dict.fromkeys(named, 1)
        found: dict[str, int] = {}
        for name, grade in grades.items():
            try:
                found[id_named([home], place_from_here(name), app.caller)] = grade
            except KbError as error:
                problems.append(f"{question.query}: {error}")
        found = {ident: grade for ident, grade in found.items() if grade > 0}
        if found:
            yield _Asked(query=question.query, grades=found)


@contextmanager
def _searcher(app: "App", variant: Variant) -> "Iterator[Searcher]":
    from kb.operations.embedder import ChangeEmbedderRequest, choice_of

    if variant.model is None:
        yield app.searcher_with(variant.settings, variant.reranker)
        return
    choice = choice_of(ChangeEmbedderRequest(model=variant.model))
    with app.models.tried(choice) as dense:
        yield app.searcher_with(variant.settings, variant.reranker, dense)


def _measured(
    searcher: "Searcher",
    asked: Sequence[_Asked],
    variant: Variant,
    problems: list[str],
    scope: Scope,
) -> tuple[list[Scores], list[float], list[int | None]]:
    found: list[Scores] = []
    milliseconds: list[float] = []
    places: list[int | None] = []
    from kb.search.rerank import is_of_reranking

    not_reranked: dict[str, int] = {}
    for question in asked:
        started = time.perf_counter()
        request = SearchRequest(
            query=question.query, k=_CHUNKS, mode=variant.mode, rerank=variant.rerank
        )
        docs, warnings = searcher.docs(request, scope)
        milliseconds.append((time.perf_counter() - started) * 1000)
        ranked = [str(doc.doc_id) for doc in docs[:RECALL_DEPTH]]
        found.append(scores(ranked, question.grades))
        places.append(place_of_first(ranked, question.grades))
        for warning in warnings:
            if is_of_reranking(warning):
                not_reranked[warning] = not_reranked.get(warning, 0) + 1
    problems += [f"{variant.name}: {line} ({n} times)" for line, n in not_reranked.items()]
    return found, milliseconds, places
