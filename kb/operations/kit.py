"""What the tools work with."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kb.knowledge.answers import AnswerResources
from kb.model.doc import Scope
from kb.store.content.files import ContentStore
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.knowledge.guide import Guide
    from kb.knowledge.topics import Topic
    from kb.search.engine import Searcher


class ToolKit(Struct, frozen=True, kw_only=True):
    """One open home, as far as the tools need it. They only read, but for signals of `help`."""

    store: Store
    content: ContentStore
    searcher: "Callable[[], Searcher]"
    """Made when a tool first needs it: a list of docs needs none."""
    topics: "Callable[[Scope], tuple[Topic, ...]]" = lambda _: ()
    """What a scope can learn, found when it is asked for; none unless said."""
    guide: "Guide | None" = None
    """Where help is to be had; without one there is no such tool."""
    answer_resources: AnswerResources = AnswerResources()
    """What answers are written and checked with; without any they are extracts."""
    together: Mapping[str, Callable[[Any, Scope], Struct]] = {}
    """Tools, by name, that this home answers together with others; any other it answers alone."""
