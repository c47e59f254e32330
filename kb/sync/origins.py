"""The register of sources that are kept current, and who is syncing which."""

import msgspec

from kb.errors import NotFound
from kb.jobs.holder import holder_name, is_gone
from kb.model.ids import ID_PREFIX_MIN
from kb.model.origin import Origin
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import SOURCES
from kb.store.store import Store

# Longer than any one source takes; a holder that died is found out at once.
_LEASE_MS = 3_600_000


def register(store: Store, origin: Origin) -> None:
    """Keep a source current from now on; what was asked for it last holds."""
    with store.write() as txn:
        known = SOURCES.get(txn, origin.origin_id.encode())
        if known is not None:
            origin = msgspec.structs.replace(
                known,
                extensions=origin.extensions,
                tags=known.tags if origin.tags is None else origin.tags,
                visibility=origin.visibility or known.visibility,
                owner=origin.owner or known.owner,
                cursor=origin.cursor or known.cursor,
            )
        SOURCES.put(txn, origin.origin_id.encode(), origin)


def unregister(store: Store, ident: str) -> Origin:
    """Leave a source alone from now on; its docs stay. Raises NotFound."""
    with store.write() as txn:
        origin = resolve(txn, ident)
        SOURCES.delete(txn, origin.origin_id.encode())
        return origin


def listed(txn: ReadTxn) -> list[Origin]:
    """Every source, in the order of kind and place."""
    return sorted((o for _, o in SOURCES.scan(txn)), key=lambda o: (o.kind, o.location))


def resolve(txn: ReadTxn, ident: str) -> Origin:
    """The one source with this id, start of an id, or place. Raises NotFound."""
    found = [
        origin
        for origin in listed(txn)
        if ident in (origin.origin_id, origin.location)
        or (len(ident) >= ID_PREFIX_MIN and origin.origin_id.startswith(ident))
    ]
    if len(found) != 1:
        raise NotFound(id=ident)
    return found[0]


def hold(store: Store, origin_id: str) -> Origin | None:
    """Take a source for this process; None where another has it, or it is gone."""
    with store.write() as txn:
        origin = SOURCES.get(txn, origin_id.encode())
        now_ms = store.clock.lease_ms()
        if origin is None:
            return None
        if origin.holder and origin.held_until_ms > now_ms and not is_gone(origin.holder):
            return None
        held = msgspec.structs.replace(
            origin,
            holder=holder_name(),
            held_until_ms=now_ms + _LEASE_MS,
            tried_ms=store.clock.now_ms(),
        )
        SOURCES.put(txn, origin_id.encode(), held)
        return held


def give_back(store: Store, origin: Origin) -> None:
    """Write what a sync learned of a source, and let others have it."""
    with store.write() as txn:
        if SOURCES.get(txn, origin.origin_id.encode()) is not None:
            _put_free(txn, origin)


def _put_free(txn: WriteTxn, origin: Origin) -> None:
    free = msgspec.structs.replace(origin, holder="", held_until_ms=0)
    SOURCES.put(txn, origin.origin_id.encode(), free)
