"""The guide: guidance for a question, and signals for a person."""

from collections.abc import Callable, Sequence
from typing import Final

from kb.errors import ReadOnlyHome
from kb.knowledge.guide import signals
from kb.knowledge.guide.answers import Guidance, SignalReceipt
from kb.knowledge.guide.catalog import EntryCatalog, ask
from kb.model.doc import Scope
from kb.model.signal import SignalKind
from kb.store.store import Store

_NEXT: Final[dict[SignalKind, str]] = {
    "stuck": (
        "A person sees this in `kb signals`. No answer comes by this way: go on with other work, "
        "or ask for guidance in other words."
    ),
    "escalate": (
        "A person sees this in `kb signals` and has to decide. Leave this piece of work as it is "
        "until then, and say so to whoever gave it to you."
    ),
    "checkpoint": (
        "All that was here is in the backup, so you may go on. A person goes back to it with "
        "`kb backup restore {backup} --to DIR`."
    ),
}


class Guide:
    """Answers from entry catalogs, and keeps signals in one store. Safe to share by threads."""

    def __init__(
        self,
        catalogs: Sequence[EntryCatalog],
        store: Store | None,
        back_up: Callable[[str], str],
    ) -> None:
        """`store` is None if there is no home; `back_up` makes a backup and returns its name."""
        self._catalogs = tuple(catalogs)
        self._store = store
        self._back_up = back_up
        self._backgrounds: dict[str, float] = {}

    def guidance(self, question: str, scope: Scope) -> Guidance:
        """Sections of entries that answer a question; see `kb.knowledge.guide.catalog.ask`."""
        return ask(self._catalogs, question, scope, self._backgrounds)

    def leave(self, kind: SignalKind, reason: str, context: str, scope: Scope) -> SignalReceipt:
        """Keep a signal for a person; a checkpoint makes a backup first.

        Raises ReadOnlyHome where there is no home, and what `kb.knowledge.guide.signals.leave` and
        `kb.upkeep.backup.Backups.create` raise.
        """
        store = self._store
        if store is None:
            raise ReadOnlyHome("there is none yet; `kb init` makes one", place="the home")
        backup = None
        if kind == "checkpoint":
            with store.read() as txn:
                signals.check_room(txn, kind, scope)
            backup = self._back_up(reason)
        signal = signals.leave(store, kind, reason, context, scope, backup)
        message = _NEXT[kind].format(backup=backup)
        return SignalReceipt(signal_id=signal.signal_id, message=message, backup=backup)
