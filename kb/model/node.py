"""Nodes: the machines that share a home, what they follow of it and what their workers do."""

from typing import Final

from msgspec import Struct

FOLLOWER_TTL_MS: Final = 7 * 24 * 3_600_000
"""A cache that nobody has used for so long is not waited for; it is made anew when it is used."""
WORKER_TTL_MS: Final = 120_000
"""A worker that has said nothing for so long is not there any more."""


class CacheContents(Struct, frozen=True, kw_only=True):
    """What a cache held at a position of the log, in a few bytes, to be compared with others."""

    log_seq: int
    rows: int
    digest: str
    """Of the chunks and their sources."""
    answers: str = ""
    """Of words: which chunks some of them find."""
    analysis: int = 0
    """How words are analysed; answers of another analysis are not to be compared."""
    is_checked: bool = False
    """Whether it was compared with the store, by `kb check`."""
    problem: str = ""
    """What that found wrong; empty if nothing."""


class Follower(Struct, frozen=True, kw_only=True):
    """A cache of a node that follows the change log; the log is cut behind the slowest live one."""

    node: str
    cache: str
    """Where its files lie on that node."""
    log_seq: int
    """It has all entries up to this one, or more."""
    seen_ms: int
    contents: CacheContents | None = None
    """What it held when it was last looked at; None if it was made anew since."""


class NodeCaches(Struct, frozen=True, kw_only=True):
    """How it stands with the caches of a node, as it said last. Fields are JSON output."""

    node: str
    behind: int
    """How many entries of the log the furthest behind lacked."""
    seen_ms: int
    """When that was said."""
    problems: tuple[str, ...] = ()
    """Which of its caches hold or answer something else than they should."""


class WorkerRow(Struct, frozen=True, kw_only=True):
    """What a process of workers has done, written with a commit that it makes anyway."""

    node: str
    holder: str
    """The process, as it is named in leases."""
    model: str
    since_ms: int
    """When it embedded its first texts since it last had nothing to do."""
    seen_ms: int
    texts: int
    """How many texts it has embedded since then."""
