"""What a reader may open by its address: docs, and subjects of topics."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from kb.errors import ConfigError, NotFound, SourceError
from kb.home.spaces.spaces import Spaces
from kb.knowledge.topics import LearnLimits, Topic, read_contents, without_learned
from kb.knowledge.topics.load import SubjectRequest, load
from kb.model.doc import Scope
from kb.operations.failure import Failed
from kb.operations.fetch import FetchedText
from kb.operations.list_docs import DocsPage
from kb.operations.table import answer

DOC: Final = "kb://doc/"
SUBJECT: Final = "kb://topic/"
PAGE_ROWS: Final = 100
_TOKENS_MAX: Final = 50_000
_LIMITS: Final = LearnLimits(answer_bytes_max=4 * _TOKENS_MAX)


class Resource(Struct, frozen=True, kw_only=True):
    """A text that can be read by its address."""

    uri: str
    name: str
    description: str


class Page(Struct, frozen=True, kw_only=True):
    """Some of the resources, and where the next ones begin."""

    resources: tuple[Resource, ...]
    next_cursor: str | None


class Text(Struct, frozen=True, kw_only=True):
    """What a resource says, as markdown."""

    text: str
    truncated: str | None
    """What was cut to keep it within its bound, in words."""


def listed(spaces: Spaces, cursor: str | None, scope: Scope) -> Page | Failed:
    """A page of at most 100: docs as `kb_list_docs` has them, then subjects by their addresses.

    The cursor holds the place itself: the last doc, or the last address.
    """
    if cursor is not None and cursor.startswith(SUBJECT):
        return _subjects(spaces, cursor, scope)
    arguments = {"limit": PAGE_ROWS, "cursor": cursor}
    page = answer("kb_list_docs", arguments, spaces, scope)
    if isinstance(page, Failed):
        return page
    assert isinstance(page, DocsPage)
    if not page.docs:
        return _subjects(spaces, SUBJECT, scope)
    rows = tuple(
        Resource(uri=f"{DOC}{doc.doc_id}", name=doc.title, description=doc.source)
        for doc in page.docs
    )
    after = SUBJECT if topics_of(spaces, scope) else None
    return Page(resources=rows, next_cursor=page.next_cursor or after)


def read(spaces: Spaces, uri: str, scope: Scope) -> Text | Failed:
    """The text at an address. Raises NotFound, the same for what is hidden and was never there."""
    if uri.startswith(SUBJECT):
        return _read_subject(spaces, uri, scope)
    ident = uri.removeprefix(DOC)
    if ident == uri or not ident.startswith("d"):
        raise NotFound(id=uri)
    doc = answer("kb_fetch", {"id": ident, "max_tokens": _TOKENS_MAX}, spaces, scope)
    if isinstance(doc, Failed):
        return doc
    assert isinstance(doc, FetchedText)
    return Text(text=doc.text, truncated=doc.truncated)


def topics_of(spaces: Spaces, scope: Scope) -> tuple[Topic, ...]:
    """A scope's topics with all subjects, learned or not; none where they cannot be read."""
    try:
        topics = spaces.topics(scope)
    except ConfigError:
        return ()
    return without_learned(topics)


def _subjects(spaces: Spaces, after: str, scope: Scope) -> Page:
    rows = sorted(
        (row for row in _all_subjects(spaces, scope) if row.uri > after), key=lambda row: row.uri
    )
    page = tuple(rows[:PAGE_ROWS])
    return Page(resources=page, next_cursor=page[-1].uri if len(rows) > len(page) else None)


def _all_subjects(spaces: Spaces, scope: Scope) -> Iterator[Resource]:
    for topic in topics_of(spaces, scope):
        try:
            slugs = read_contents(topic, _LIMITS.entries_max).available
        except SourceError:
            continue
        for slug in slugs:
            uri = f"{SUBJECT}{topic.id}/{quote(slug)}"
            yield Resource(uri=uri, name=slug, description=f"A subject of {topic.for_prompts.name}")


def _read_subject(spaces: Spaces, uri: str, scope: Scope) -> Text:
    ident, _, slug = unquote(uri.removeprefix(SUBJECT)).partition("/")
    for topic in topics_of(spaces, scope):
        if topic.id != ident:
            continue
        try:
            subjects = read_contents(topic, _LIMITS.entries_max).subjects
        except SourceError:
            break
        requests = [
            SubjectRequest(subject=subject, by_name=True)
            for subject in subjects
            if subject.slug == slug and not subject.problem
        ]
        loaded = load(topic, requests, _LIMITS, bare=True, may_cut=True)
        if loaded.subjects:
            return Text(text=loaded.text, truncated=loaded.truncated)
    raise NotFound(id=uri)
