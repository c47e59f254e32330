"""What does a question need of an open home?"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from kb.model.doc import OPERATOR, Scope
from kb.model.search import SpaceName
from kb.store.content.files import ContentStore
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.knowledge.answers import AnswerResources
    from kb.knowledge.topics import Topic
    from kb.search.engine import Searcher


def _no_resources() -> "AnswerResources":
    from kb.knowledge.answers import AnswerResources

    return AnswerResources()


class OpenHome(Struct, frozen=True, kw_only=True):
    """One open home, as far as a question needs it."""

    name: SpaceName | None = None
    """Of its space; None for a home that is asked alone and knows no others."""
    store: Store
    content: ContentStore
    searcher: "Callable[[], Searcher]"
    """Opened when a question first needs it: a list of docs needs none."""
    caller: Scope = OPERATOR
    """Who asks here, unless a server has let another user in."""
    topics: "Callable[[Scope], tuple[Topic, ...]]" = lambda _: ()
    """What a scope can learn here. Raises ConfigError where a topic's folder is gone."""
    answer_resources: "Callable[[], AnswerResources]" = _no_resources
    """What answers are written and checked with; without any they are extracts."""

    def scope(self, scope: Scope) -> Scope:
        """Who somebody is here: the person at the machine is a role where a database says so."""
        return scope.within(self.caller)
