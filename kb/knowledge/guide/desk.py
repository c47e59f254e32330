"""Where is help to be had? Guidance for a question, or a signal for a person."""

from collections.abc import Callable, Sequence
from typing import Final

from kb.errors import ReadOnlyHome
from kb.knowledge.guide import signals
from kb.knowledge.guide.answers import Guidance, Told
from kb.knowledge.guide.shelf import Shelf, ask
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


class Desk:
    """Answers from shelves, and keeps signals in one store. Safe to share by threads."""

    def __init__(
        self,
        shelves: Sequence[Shelf],
        store: Store | None,
        back_up: Callable[[str], str],
    ) -> None:
        """`store` is None where there is no home yet; `back_up` makes a backup and names it."""
        self._shelves = tuple(shelves)
        self._store = store
        self._back_up = back_up
        self._backgrounds: dict[str, float] = {}

    def guidance(self, question: str, scope: Scope) -> Guidance:
        """Sections of entries that answer a question; see `kb.knowledge.guide.shelf.ask`."""
        return ask(self._shelves, question, scope, self._backgrounds)

    def leave(self, kind: SignalKind, reason: str, context: str, scope: Scope) -> Told:
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
        return Told(signal_id=signal.signal_id, message=message, backup=backup)
