"""The register of sources that are kept current, and who is syncing which."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import AmbiguousId, NotFound, SourceError
from kb.intake.sync.walk import normalize_extensions
from kb.model.failpoints import failpoint
from kb.model.ids import ID_PREFIX_MIN, Lsid
from kb.model.origin import FOLDERS, NOTEBOOK_INDEX, Origin
from kb.model.source import display_name, path_of
from kb.store.jobs.holder import holder_name, is_gone
from kb.store.kv import ReadTxn
from kb.store.records import SOURCES
from kb.store.store import Store

# Longer than any one source takes; a holder that died is found out at once.
_LEASE_MS: Final = 3_600_000
# What a sync learns of a source; the rest is what a person asked for, and stays theirs.
_SYNC_FIELDS: Final = (
    "cursor",
    "tried_ms",
    "synced_ms",
    "next_try_ms",
    "failures",
    "last_error",
    "gone_since_ms",
)


class UnknownSource(NotFound):
    """Nothing that is kept current has this id or place."""

    template = "no source {id}; `kb sources` lists those that are kept current"


def origin_folder(origin: Origin) -> Path:
    """The folder that a location names; it may hold any byte that a name may."""
    return path_of(Lsid(origin.location)) or Path(origin.location)


def covers(origin: Origin, path: Path) -> bool:
    """Whether a file below a registered folder is one that it asks for, by its name."""
    folder = origin_folder(origin)
    if origin.kind not in FOLDERS or not path.is_relative_to(folder):
        return False
    if origin.kind == "notebook" and path == folder / NOTEBOOK_INDEX:
        return False
    if any(part.startswith(".") for part in path.relative_to(folder).parts):
        return False
    extensions = normalize_extensions(origin.extensions)
    return "*" in extensions or path.suffix.lower().lstrip(".") in extensions


def inner_folders(txn: ReadTxn, root: Path) -> list[Origin]:
    """Registered folders below another one: what they cover is theirs alone."""
    return [
        origin
        for origin in list_origins(txn)
        if origin.kind in FOLDERS
        and origin_folder(origin) != root
        and origin_folder(origin).is_relative_to(root)
    ]


def register(store: Store, origin: Origin) -> None:
    """Keep a source current from now on; what was asked for it last holds.

    It has just been taken in, so whatever went wrong with it before is over.
    """
    with store.write() as txn:
        registered = SOURCES.get(txn, origin.origin_id.encode())
        if registered is not None:
            origin = msgspec.structs.replace(
                registered,
                extensions=origin.extensions,
                tags=registered.tags if origin.tags is None else origin.tags,
                visibility=origin.visibility or registered.visibility,
                owner=origin.owner or registered.owner,
                cursor=origin.cursor or registered.cursor,
                synced_ms=origin.synced_ms,
                next_try_ms=0,
                failures=0,
                last_error=None,
                gone_since_ms=None,
            )
        SOURCES.put(txn, origin.origin_id.encode(), origin)


def unregister(store: Store, ident: str) -> Origin:
    """Leave a source alone from now on; its docs stay. Raises UnknownSource or AmbiguousId."""
    with store.write() as txn:
        origin = resolve_origin(txn, ident)
        SOURCES.delete(txn, origin.origin_id.encode())
        return origin


def list_origins(txn: ReadTxn) -> list[Origin]:
    """Every source, in the order of kind and place; of one place the local user's comes first."""
    origins = (origin for _, origin in SOURCES.scan(txn))
    return sorted(origins, key=lambda o: (o.kind, o.location, o.owner or ""))


def resolve_origin(txn: ReadTxn, ident: str) -> Origin:
    """The one source with this id, start of an id, or place however it was typed.

    Raises UnknownSource or AmbiguousId.
    """
    origins = list_origins(txn)
    places = _spellings(ident)
    exact = [o for o in origins if o.origin_id == ident or o.location in places]
    if exact:
        return exact[0]
    matches = [o for o in origins if o.origin_id.startswith(ident)]
    if not matches or len(ident) < ID_PREFIX_MIN:
        raise UnknownSource(id=ident)
    if len(matches) > 1:
        raise AmbiguousId(id=ident, candidates=", ".join(_ids(matches)))
    return matches[0]


def _ids(origins: Iterable[Origin]) -> list[str]:
    return [origin.origin_id for origin in origins]


def _spellings(ident: str) -> set[str]:
    if not ident:
        return set()
    if "://" in ident[:12]:
        from kb.intake.sync.url import url_lsid

        try:
            return {ident, url_lsid(ident).removeprefix("url:")}
        except SourceError:
            return {ident}
    return {ident, display_name(Path(os.path.realpath(os.path.expanduser(ident))))}


def acquire(store: Store, listed_as: Origin) -> Origin | None:
    """Take a source for this process, as it is now.

    None where another has it, or has tried it since it was listed as this, or it is gone.
    """
    with store.write() as txn:
        origin = SOURCES.get(txn, listed_as.origin_id.encode())
        if origin is None or origin.tried_ms != listed_as.tried_ms:
            return None
        now_ms = store.clock.lease_ms()
        # An end that is further off than a lease is long was set before a restart.
        is_running = now_ms < origin.held_until_ms <= now_ms + _LEASE_MS
        if origin.holder and is_running and not is_gone(origin.holder):
            return None
        held = msgspec.structs.replace(
            origin,
            holder=holder_name(),
            held_until_ms=now_ms + _LEASE_MS,
            # Never twice the same, so that another can tell.
            tried_ms=max(store.clock.now_ms(), (origin.tried_ms or 0) + 1),
        )
        SOURCES.put(txn, origin.origin_id.encode(), held)
        return held


def release(store: Store, origin: Origin) -> None:
    """Write what a sync learned of a source, and let others have it.

    What a person asked for it in the meantime stays; what they took off the register stays off.
    """
    failpoint("sync.before_give_back")
    with store.write() as txn:
        registered = SOURCES.get(txn, origin.origin_id.encode())
        if registered is None or registered.holder != origin.holder:
            return
        learned = {name: getattr(origin, name) for name in _SYNC_FIELDS}
        free = msgspec.structs.replace(registered, holder="", held_until_ms=0, **learned)
        SOURCES.put(txn, origin.origin_id.encode(), free)
