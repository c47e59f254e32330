"""Signals that agents leave for a person, open until somebody closes them."""

from collections.abc import Callable
from typing import Final

import msgspec

from kb.errors import AmbiguousId, NoSignal, UsageError
from kb.model.doc import Scope
from kb.model.ids import sha256_hex
from kb.model.signal import Signal, SignalKind
from kb.store import meta
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import SIGNALS
from kb.store.store import Store

REASON_CHARS_MAX: Final = 1_000
CONTEXT_CHARS_MAX: Final = 16_384
OPEN_MAX: Final = 100
CHECKPOINTS_OPEN_MAX: Final = 10
_DONE_MAX: Final = 1_000
_SHORT_MIN: Final = 4
_HEX: Final = 12


def listed(txn: ReadTxn, *, with_done: bool = False) -> list[Signal]:
    """The open signals, or all, the oldest first."""
    rows = (signal for _, signal in SIGNALS.scan(txn))
    selected = (signal for signal in rows if with_done or signal.done_ms is None)
    return sorted(selected, key=lambda signal: (signal.added_ms, signal.signal_id))


def check_room(txn: ReadTxn, kind: SignalKind, scope: Scope) -> None:
    """Raise UsageError if a caller has too many open signals of a kind for another one."""
    mine = [signal for signal in listed(txn) if signal.user == scope.user]
    of_kind = sum(signal.kind == "checkpoint" for signal in mine)
    if len(mine) >= OPEN_MAX or (kind == "checkpoint" and of_kind >= CHECKPOINTS_OPEN_MAX):
        what = f"{len(mine)} signals" if len(mine) >= OPEN_MAX else f"{of_kind} checkpoints"
        raise UsageError(
            f"you already have {what} open; a person closes them with `kb signals done`"
        )


def leave(
    store: Store,
    kind: SignalKind,
    reason: str,
    context: str,
    scope: Scope,
    backup: str | None = None,
) -> Signal:
    """Store a signal in one transaction; it is durable on return.

    Raises UsageError if reason or context is too long, the reason is blank, or the caller has too
    many open signals; ReadOnlyHome, StoreFull.
    """
    if not reason.strip() or len(reason) > REASON_CHARS_MAX:
        raise UsageError(f"a reason has 1 to {REASON_CHARS_MAX:,} characters")
    if len(context) > CONTEXT_CHARS_MAX:
        raise UsageError(f"a context has at most {CONTEXT_CHARS_MAX:,} characters")
    with store.write() as txn:
        check_room(txn, kind, scope)
        number = meta.next_number(txn, "signal")
        now_ms = store.clock.now_ms()
        signal = Signal(
            signal_id="g" + sha256_hex(f"{number} {now_ms} {kind} {reason}")[:_HEX],
            kind=kind,
            reason=reason,
            context=context,
            added_ms=now_ms,
            user=scope.user,
            backup=backup,
        )
        SIGNALS.put(txn, signal.signal_id.encode(), signal)
    return signal


def close(store: Store, ident: str, may_close: Callable[[Signal], bool] = lambda _: True) -> Signal:
    """Close a signal, by its id or a unique start of it; one that is closed stays as it is.

    One that the caller may not close is as one that is not there. The newest thousand closed ones
    are kept. Raises NoSignal, AmbiguousId, ReadOnlyHome.
    """
    with store.write() as txn:
        signal = _resolved(txn, ident, may_close)
        if signal.done_ms is None:
            signal = msgspec.structs.replace(signal, done_ms=store.clock.now_ms())
            SIGNALS.put(txn, signal.signal_id.encode(), signal)
            _drop_oldest(txn)
    return signal


def _resolved(txn: ReadTxn, ident: str, may_close: Callable[[Signal], bool]) -> Signal:
    if len(ident) < _SHORT_MIN:
        raise NoSignal(id=ident)
    rows = (signal for _, signal in SIGNALS.scan(txn, ident.encode("utf-8", "replace")))
    matches = [signal for signal in rows if may_close(signal)]
    if not matches:
        raise NoSignal(id=ident)
    if len(matches) > 1:
        candidates = ", ".join(signal.signal_id for signal in matches[:4])
        raise AmbiguousId(id=ident, candidates=candidates)
    return matches[0]


def _drop_oldest(txn: WriteTxn) -> None:
    done = [signal for signal in listed(txn, with_done=True) if signal.done_ms is not None]
    done.sort(key=lambda signal: (signal.done_ms or 0, signal.signal_id))
    for signal in done[:-_DONE_MAX]:
        SIGNALS.delete(txn, signal.signal_id.encode())
