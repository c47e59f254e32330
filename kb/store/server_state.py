"""How it stands with the server that a home's store is on."""

from msgspec import Struct


class ServerState(Struct, frozen=True, kw_only=True):
    """A PostgreSQL server, as a process that uses a home on it sees it. Fields are JSON output."""

    version: str
    major: int
    round_trip_ms: float
    """The median of a few."""
    may_write: bool
    """Whether this user may write to the home's tables."""
    connections: int
    """How many clients are connected, of all programs."""
    connections_max: int
    synchronous_commit: str
    fsync: bool
    is_replica: bool
    """Whether it follows another server, so that nobody can write to it."""
    replicas: int
    """How many servers follow it."""
