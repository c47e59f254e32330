"""Signals of an open home: what agents left for a person."""

from typing import TYPE_CHECKING

from msgspec import Struct

from kb.model.signal import Signal

if TYPE_CHECKING:
    from kb.home.app import App

AgentSignal = Signal


class SignalList(Struct, frozen=True, kw_only=True):
    """Signals, the oldest first."""

    signals: list[AgentSignal]


def list_signals(app: "App", *, with_closed: bool = False) -> SignalList:
    """The open signals, or all."""
    from kb.knowledge.guide import signals

    with app.store.read() as txn:
        return SignalList(signals=signals.listed(txn, with_done=with_closed))


def close_signal(app: "App", ident: str) -> AgentSignal:
    """Close a signal, by its id or a unique start of it; one that is closed stays as it is.

    Raises NoSignal, AmbiguousId, ReadOnlyHome.
    """
    from kb.knowledge.guide import signals

    return signals.close(app.store, ident)
