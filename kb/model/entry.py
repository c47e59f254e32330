"""Entries: what a markdown file says of itself, so that others can refer to it."""

from typing import Final

from msgspec import Struct

GUIDE: Final = "guide"
"""The type of entries that say how things are done. `kb guide` asks them; searches that have no
limit leave them out."""


class EntryMeta(Struct, frozen=True, kw_only=True):
    """An entry's own id and what it says of itself beside its title and tags."""

    zettel_id: str
    """Lower-case slug; names the entry wherever its file lies."""
    entry_type: str = "note"
    version: str = "1.0.0"
    """Semantic version."""
    author: str | None = None
    references: tuple[str, ...] = ()
    """Ids of the entries that it refers to, whether they are there or not; none twice."""
