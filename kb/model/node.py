"""Nodes: the machines that share a home, what they follow of it and what their workers do."""

from typing import Final

from msgspec import Struct

FOLLOWER_TTL_MS: Final = 7 * 24 * 3_600_000
"""A cache that nobody has used for so long is not waited for; it is made anew when it is used."""
WORKER_TTL_MS: Final = 120_000
"""A worker that has said nothing for so long is not there any more."""


class Follower(Struct, frozen=True, kw_only=True):
    """A cache of a node that follows the change log; the log is cut behind the slowest live one."""

    node: str
    cache: str
    """Where its files lie on that node."""
    log_seq: int
    """It has all entries up to this one, or more."""
    seen_ms: int


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
