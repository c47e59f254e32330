"""What the tools work with."""

from msgspec import Struct

from kb.content.files import ContentStore
from kb.search.engine import Searcher
from kb.store.store import Store


class ToolKit(Struct, frozen=True, kw_only=True):
    """One open home, as far as the tools need it. They only read."""

    store: Store
    content: ContentStore
    searcher: Searcher
