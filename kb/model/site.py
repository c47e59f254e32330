"""Sites: which pages of one belong to a source, and what is known of each."""

from typing import Literal

from msgspec import Struct

PageState = Literal["found", "taken", "same", "alias", "left", "gone"]
"""`found` is to be fetched; `taken` has a doc; `same` says what another page says; `alias` leads to
another page; `left` has nothing to take; `gone` is not there."""
PageDoc = Literal["none", "own", "dropped"]
"""Whether the source has made a doc of the page, or made one and removed it again."""


class SiteOptions(Struct, frozen=True, kw_only=True):
    """Which pages of a site are taken; an empty or zero value leaves that to kb."""

    include: tuple[str, ...] = ()
    """Globs of paths; without any, what is below the start's path."""
    exclude: tuple[str, ...] = ()
    """Globs of paths that are not fetched."""
    pages_max: int = 0
    depth_max: int = 0


class SitePage(Struct, frozen=True, kw_only=True):
    """What is known of one page of a site, one entry of a feed, or one file of a repository."""

    url: str
    state: PageState = "found"
    depth: int = 0
    """How many links lead to it from the start."""
    doc: PageDoc = "none"
    cursor: str = ""
    """The server's validator: etag:, lastmod: or contenthash:. Of a file blob:, with the
    id of its content."""
    raw_sha256: str = ""
    """Of its bytes when they were last read."""
    text_sha256: str = ""
    """Of its markdown then."""
    lastmod: str = ""
    """As the sitemap or the feed had it then."""
    asked_ms: int = 0
    """When it was last asked for."""
    pass_no: int = 0
    """The last pass over the site that asked for it."""
    failures: int = 0
    leads_to: str = ""
    """The page that it is, or says the same as."""
    reason: str = ""
    is_late: bool = False
    """It is another form of a page, and waits until the others are known."""
    is_own: bool = False
    """It counts as a page of its own, whatever it names as its canonical address."""
