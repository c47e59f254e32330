"""Registries that entries are pulled from, and the entries that were."""

from msgspec import Struct


class RegistryRecord(Struct, frozen=True, kw_only=True):
    """A collection of entries that is known by a name."""

    name: str
    location: str
    """A URL without a slash at its end, or an absolute path."""
    trust: str = ""
    """The public key that must have signed its index; empty asks for no signature."""
    order: int
    """Of two registries with one entry the lower one, which was added first, gives it."""
    added_ms: int
    cursor: str = ""
    """What the server said of the index last time: etag:, lastmod: or contenthash:."""
    index_sha256: str = ""
    """Of the index that was read and found good last; empty before the first."""
    read_ms: int | None = None
    """When a registry was last found to be as that index says."""


class PulledEntry(Struct, frozen=True, kw_only=True):
    """An entry that came from a registry, by what its file was then."""

    zettel_id: str
    registry: str
    version: str
    """Empty until it has come once."""
    sha256: str
    """Of its file as it came; another hash is a change made here. Empty until it has come."""
    wanted_sha256: str = ""
    """Of the file that is being put in place; empty where none is."""
    pulled_ms: int
