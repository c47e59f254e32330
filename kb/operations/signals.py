"""Signals of an open home: what agents left for a person."""

from typing import TYPE_CHECKING

from msgspec import Struct

from kb.model.signal import Signal

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.model.doc import Scope

AgentSignal = Signal


class SignalList(Struct, frozen=True, kw_only=True):
    """Signals, the oldest first."""

    signals: list[AgentSignal]


def list_signals(app: "App", *, with_closed: bool = False) -> SignalList:
    """The open signals, or all; who does not own the home sees those that were left for them."""
    from kb.knowledge.guide import signals

    with app.store.read() as txn:
        rows = signals.listed(txn, with_done=with_closed)
    return SignalList(signals=[row for row in rows if _is_own(row, app.caller)])


def close_signal(app: "App", ident: str) -> AgentSignal:
    """Close a signal, by its id or a unique start of it; one that is closed stays as it is.

    Raises NoSignal, AmbiguousId, ReadOnlyHome.
    """
    from kb.knowledge.guide import signals

    caller = app.caller
    return signals.close(app.store, ident, lambda signal: _is_own(signal, caller))


def _is_own(signal: AgentSignal, caller: "Scope") -> bool:
    """Whether an agent that asked as the caller has left it; an operator's are all."""
    return caller.operator or signal.user == caller.user
