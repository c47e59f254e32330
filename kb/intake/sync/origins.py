"""The register of sources that are kept current, and who is syncing which."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import AmbiguousId, NotFound, SourceError
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.walk import is_taken, normalize_extensions
from kb.model.doc import LOCAL_USER, Scope, audience_of
from kb.model.failpoints import failpoint
from kb.model.ids import ID_PREFIX_MIN, Lsid
from kb.model.origin import FOLDERS, NOTEBOOK_INDEX, OF_A_MACHINE, Origin, OriginKind, origin_id
from kb.model.source import display_name, on_machine, path_of
from kb.store.jobs.holder import holder_name, is_gone
from kb.store.keys import site_prefix
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import SITE_PAGES, SOURCES
from kb.store.store import Store

# Longer than any one source takes. If the holder dies, others notice at once.
_LEASE_MS: Final = 3_600_000
# The fields that a sync learns. The other fields hold what a person asked for, and stay.
_SYNC_FIELDS: Final = (
    "cursor",
    "tried_ms",
    "synced_ms",
    "next_try_ms",
    "failures",
    "last_error",
    "files_failed",
    "gone_since_ms",
)


class UnknownSource(NotFound):
    """No registered source has this id or place."""

    template = "there is no source {id}; `kb sources` lists them"


def origin_folder(origin: Origin) -> Path:
    """The folder that a location names; its name may hold any byte that file names may."""
    return path_of(Lsid(origin.location)) or Path(origin.location)


def covers(origin: Origin, path: Path) -> bool:
    """Whether a registered folder covers a file, by the file's name."""
    folder = origin_folder(origin)
    if origin.kind not in FOLDERS or not path.is_relative_to(folder):
        return False
    if origin.kind == "notebook" and path == folder / NOTEBOOK_INDEX:
        return False
    if any(part.startswith(".") for part in path.relative_to(folder).parts):
        return False
    return is_taken(str(path), normalize_extensions(origin.extensions))


def inner_folders(origins: Iterable[Origin], root: Path) -> list[Origin]:
    """Those that are registered folders inside another one; only they cover their files."""
    return [
        origin
        for origin in origins
        if origin.kind in FOLDERS
        and origin_folder(origin) != root
        and origin_folder(origin).is_relative_to(root)
    ]


def new_origin(
    kind: OriginKind,
    location: str,
    ingest_options: IngestOptions,
    now_ms: int,
    machine: str = "",
) -> Origin:
    """A source that is about to be registered, with what its docs were given.

    `machine` is that of a folder on a home that machines share.
    """
    return Origin(
        origin_id=origin_id(kind, on_machine(location, machine), ingest_options.owner),
        kind=kind,
        location=location,
        machine=machine,
        tags=ingest_options.tags,
        visibility=ingest_options.visibility,
        owner=ingest_options.owner,
        added_ms=now_ms,
    )


def register(store: Store, origin: Origin) -> None:
    """Register a source, so that syncs keep it current; its newest options count.

    The caller has just added it, so its earlier failures are over.
    """
    with store.write() as txn:
        registered = SOURCES.get(txn, origin.origin_id.encode())
        if registered is not None:
            origin = msgspec.structs.replace(
                registered,
                machine=origin.machine,
                extensions=origin.extensions,
                takes_ignored=origin.takes_ignored,
                site=origin.site,
                tags=registered.tags if origin.tags is None else origin.tags,
                visibility=origin.visibility or registered.visibility,
                owner=origin.owner or registered.owner,
                cursor=origin.cursor or registered.cursor,
                synced_ms=origin.synced_ms,
                next_try_ms=0,
                failures=0,
                last_error=None,
                files_failed=0,
                gone_since_ms=None,
            )
        SOURCES.put(txn, origin.origin_id.encode(), origin)


def unregister(store: Store, ident: str) -> Origin:
    """Unregister a source of the caller; its docs stay. Raises UnknownSource or AmbiguousId."""
    with store.write() as txn:
        origin = resolve_origin(txn, ident, store.caller, store.machine)
        SOURCES.delete(txn, origin.origin_id.encode())
        for key in [key for key, _ in SITE_PAGES.scan(txn, site_prefix(origin.origin_id))]:
            SITE_PAGES.delete(txn, key)
        return origin


def list_origins(txn: ReadTxn) -> list[Origin]:
    """Every source, ordered by kind and place; for one place the local user's comes first."""
    origins = (origin for _, origin in SOURCES.scan(txn))
    return sorted(origins, key=lambda o: (o.kind, o.location, o.machine, o.owner or ""))


def is_own(origin: Origin, caller: Scope) -> bool:
    """Whether a source is the caller's to sync and to remove; an operator's are all."""
    return caller.operator or (origin.owner or LOCAL_USER) == caller.user


def is_seen(origin: Origin, scope: Scope) -> bool:
    """Whether a scope sees what a source brings, as it was asked for."""
    shown = origin.visibility or "private"
    return scope.reads(audience_of(shown, origin.owner or LOCAL_USER))


def is_elsewhere(origin: Origin, machine: str) -> bool:
    """Whether a source can be read on another machine alone."""
    return origin.kind in OF_A_MACHINE and origin.machine != machine


def lies_on(origin: Origin) -> str:
    """Where the files of a source are that `is_elsewhere`, in words."""
    return f"its files are on {origin.machine or 'the machine that made the home'}; sync it there"


def origins_here(txn: ReadTxn, machine: str) -> list[Origin]:
    """Every source that this machine can read, in the order of `list_origins`."""
    return [origin for origin in list_origins(txn) if not is_elsewhere(origin, machine)]


def shown_location(origin: Origin) -> str:
    """The place of a source for people, with the machine that has it."""
    return on_machine(origin.location, origin.machine)


def resolve_origin(txn: ReadTxn, ident: str, caller: Scope, machine: str = "") -> Origin:
    """The one source of a caller with this id, start of an id, or place in any spelling.

    A place is one of this machine, unless another machine is named before it. Raises UnknownSource
    or AmbiguousId.
    """
    origins = [origin for origin in list_origins(txn) if is_own(origin, caller)]
    places = _spellings(ident)
    exact = [
        o
        for o in origins
        if o.origin_id == ident or (o.location in places and not is_elsewhere(o, machine))
    ]
    exact = exact or [o for o in origins if shown_location(o) == ident]
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
    """Take a source for this process, and return it as it is now.

    None if another process has it, has tried it since the caller listed it, or it is gone.
    """
    with store.write() as txn:
        origin = SOURCES.get(txn, listed_as.origin_id.encode())
        if origin is None or origin.tried_ms != listed_as.tried_ms:
            return None
        now_ms = store.clock.lease_ms()
        # A lease that ends later than a lease can last was written before a restart.
        is_running = now_ms < origin.held_until_ms <= now_ms + _LEASE_MS
        if origin.holder and is_running and not is_gone(origin.holder):
            return None
        held = msgspec.structs.replace(
            origin,
            holder=holder_name(),
            held_until_ms=now_ms + _LEASE_MS,
            # The holder's name is unique, so that others can tell holders apart.
            tried_ms=max(store.clock.now_ms(), (origin.tried_ms or 0) + 1),
        )
        SOURCES.put(txn, origin.origin_id.encode(), held)
        return held


def mark_synced(origin: Origin, now_ms: int) -> Origin:
    """The source after a sync without a failure."""
    return msgspec.structs.replace(
        origin,
        synced_ms=now_ms,
        failures=0,
        last_error=None,
        next_try_ms=0,
        gone_since_ms=None,
    )


def renew(txn: WriteTxn, store: Store, held: Origin) -> bool:
    """Hold a source for longer; False if this process does not hold it any more."""
    registered = SOURCES.get(txn, held.origin_id.encode())
    if registered is None or registered.holder != held.holder:
        return False
    until_ms = store.clock.lease_ms() + _LEASE_MS
    renewed = msgspec.structs.replace(registered, held_until_ms=until_ms)
    SOURCES.put(txn, held.origin_id.encode(), renewed)
    return True


def release(store: Store, origin: Origin) -> None:
    """Store what a sync learned of a source, and let others take it.

    Changes that a person made in the meantime stay; a source that a person unregistered stays so.
    """
    failpoint("sync.before_give_back")
    with store.write() as txn:
        registered = SOURCES.get(txn, origin.origin_id.encode())
        if registered is None or registered.holder != origin.holder:
            return
        learned = {name: getattr(origin, name) for name in _SYNC_FIELDS}
        free = msgspec.structs.replace(registered, holder="", held_until_ms=0, **learned)
        SOURCES.put(txn, origin.origin_id.encode(), free)
