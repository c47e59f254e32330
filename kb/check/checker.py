"""The order of the looks, and of looking again after a repair."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kb.check.caches import check_caches
from kb.check.docs import check_docs
from kb.check.files import check_files, drop_settled
from kb.check.jobs import check_jobs
from kb.check.mends import ByHand, Mend
from kb.check.notes import FINDINGS_MAX, Notes
from kb.check.passages import check_passages, check_vectors
from kb.check.records import check_counters, check_records
from kb.check.repair import Repairer
from kb.check.report import Checked, CheckReport, Finding
from kb.content.files import ContentStore
from kb.errors import StoreDamaged
from kb.index import DenseIndex, LexicalIndexes
from kb.store.kv import ReadTxn
from kb.store.store import Store

# A mend may bring out what another finding hid; each round mends one layer.
_ROUNDS_MAX: Final = 4


class Checker:
    """Compares everything in one home with what names it. Safe beside others at work."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        lexical: LexicalIndexes,
        dense: DenseIndex,
        fingerprint: str,
        dim: int,
    ) -> None:
        """`fingerprint` and `dim` are those of the model in use."""
        self._store = store
        self._content = content
        self._lexical = lexical
        self._dense = dense
        self._fingerprint = fingerprint
        self._dim = dim

    def run(self, *, repair: bool = False) -> CheckReport:
        """Look at everything; with `repair` mend what can be, and look again.

        Without it only the caches may change: they catch up, as for a search. Work that waits
        for a worker is no finding. Raises StoreFull and ReadOnlyHome from a repair.
        """
        notes = self._look()
        met = dict(notes.findings)
        left_out = notes.left_out
        if repair:
            repairer = Repairer(
                self._store, self._content, self._lexical, self._dense, self._fingerprint
            )
            done: Sequence[Mend] = ()
            for _ in range(_ROUNDS_MAX):
                mends = [mend for mend in notes.mends if not isinstance(mend, ByHand)]
                if not mends or mends == done:
                    break
                repairer.apply(mends)
                done, notes = mends, self._look()
                met |= notes.findings
                left_out = notes.left_out
        findings = [_marked(found, key not in notes.findings) for key, found in met.items()]
        return CheckReport(
            sound=not notes.findings,
            checked=Checked(**notes.counts),
            findings=tuple(findings[:FINDINGS_MAX]),
            findings_left_out=left_out + len(findings[FINDINGS_MAX:]),
        )

    def _look(self) -> Notes:
        notes = Notes()
        self._step(notes, "records", lambda txn: check_records(txn, notes))
        self._step(notes, "counters", lambda txn: check_counters(txn, notes))
        self._step(notes, "docs", lambda txn: check_docs(txn, notes, self._fingerprint))
        self._step(notes, "jobs", lambda txn: check_jobs(txn, notes))
        self._step(notes, "chunks", lambda txn: check_passages(txn, notes, self._fingerprint))
        self._step(
            notes, "vectors", lambda txn: check_vectors(txn, notes, self._fingerprint, self._dim)
        )
        self._step(notes, "files", lambda txn: check_files(txn, notes, self._content))
        self._step(notes, "files", lambda txn: drop_settled(txn, notes))
        try:
            check_caches(self._store, notes, self._lexical, self._dense)
        except StoreDamaged as error:
            _note_damage(notes, "caches", error)
        return notes

    def _step(self, notes: Notes, name: str, look: Callable[[ReadTxn], None]) -> None:
        """One look in a transaction of its own; a page that cannot be read ends only this one."""
        try:
            with self._store.read() as txn:
                look(txn)
        except StoreDamaged as error:
            _note_damage(notes, name, error)


def _note_damage(notes: Notes, name: str, error: StoreDamaged) -> None:
    advice = "restore the home from a backup"
    notes.add(name, f"cannot be read through: {error.fields['detail']}", ByHand(advice))


def _marked(found: Finding, repaired: bool) -> Finding:
    return msgspec.structs.replace(found, repaired=repaired)
