"""Registries, and the entries pulled from them."""

from msgspec import Struct


class RegistryRecord(Struct, frozen=True, kw_only=True):
    """A registered collection of entries."""

    name: str
    location: str
    """A URL without a trailing slash, or an absolute path."""
    trust: str = ""
    """The public key that must have signed its index; empty requires no signature."""
    order: int
    """Of two registries with the same entry the one with the lower order wins."""
    added_ms: int
    cursor: str = ""
    """The version of the index when last read: etag:, lastmod: or contenthash:."""
    index_sha256: str = ""
    """SHA-256 of the last valid index; empty before the first."""
    read_ms: int | None = None
    """When the registry was last found to match that index."""


class PulledEntry(Struct, frozen=True, kw_only=True):
    """An entry pulled from a registry, with the state of its file then."""

    zettel_id: str
    registry: str
    version: str
    """Empty before the first pull."""
    sha256: str
    """Of the pulled file; another hash means a local change. Empty before the first pull."""
    wanted_sha256: str = ""
    """Of the file that is being written; empty if none is."""
    pulled_ms: int
