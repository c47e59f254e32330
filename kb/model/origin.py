"""Origins: the folders, URLs and collections that are synced again and again."""

from typing import Final, Literal

from msgspec import Struct

from kb.model.doc import Visibility
from kb.model.ids import sha256_hex
from kb.model.site import SiteOptions
from kb.model.source import owned_lsid

OriginKind = Literal[
    "folder", "url", "site", "feed", "repository", "topic", "pack", "entries", "notebook"
]
FOLDERS: Final[tuple[OriginKind, ...]] = ("folder", "notebook")
"""Origins that are folder trees, where moved files are recognized by their bytes."""
OF_A_MACHINE: Final[tuple[OriginKind, ...]] = ("folder", "topic", "pack")
"""Origins whose files lie on one of the machines that share a home."""
SITES: Final[tuple[OriginKind, ...]] = ("site", "feed", "repository")
"""Origins with many pages or files, of which the store keeps a list."""
NOTEBOOK_INDEX: Final = "INDEX.md"
"""The list of a notebook's notes; it is not a note itself."""


class Origin(Struct, frozen=True, kw_only=True):
    """A source that `kb sync-all` looks at, with what was asked when it was added."""

    origin_id: str
    kind: OriginKind
    location: str
    """An absolute path or a URL; of a topic or a pack its id, of entries their folder."""
    machine: str = ""
    """The machine that has the folder, on a home that machines share; empty for that which made
    the home. Any machine reads a URL."""
    extensions: tuple[str, ...] = ()
    takes_ignored: bool = False
    """Of a folder or a repository: whether what git ignores is taken, too."""
    tags: tuple[str, ...] | None = None
    visibility: Visibility | None = None
    owner: str | None = None
    cursor: str = ""
    """The server's validator for the page: etag:, lastmod: or contenthash:. Of a site its pass,
    of a repository its commit."""
    added_ms: int
    tried_ms: int | None = None
    synced_ms: int | None = None
    """When it was last synced without a failure."""
    next_try_ms: int = 0
    """Wall clock; after a failure kb tries it again no earlier."""
    failures: int = 0
    last_error: str | None = None
    files_failed: int = 0
    """How many of its files or pages the last sync could not take in."""
    gone_since_ms: int | None = None
    holder: str = ""
    """The process that is syncing it."""
    held_until_ms: int = 0
    """Lease clock."""
    site: SiteOptions | None = None
    """Of a site: which of its pages are taken."""


def origin_id(kind: OriginKind, location: str, owner: str | None = None) -> str:
    """Equal for the same place and owner, so that adding it twice registers it once."""
    return "s" + sha256_hex(owned_lsid(owner, f"{kind}:{location}"))[:16]
