"""The order of the looks, and of looking again after a repair."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kb.errors import StoreDamaged
from kb.search.index import DenseIndex, LexicalIndexes
from kb.store.content.files import ContentStore
from kb.store.kv import ReadTxn
from kb.store.store import Store
from kb.upkeep.check.caches import check_caches
from kb.upkeep.check.docs import check_docs
from kb.upkeep.check.files import check_files, drop_settled
from kb.upkeep.check.jobs import check_jobs
from kb.upkeep.check.mends import ByHand, Mend
from kb.upkeep.check.notebook import NotebookPlace, check_notebook, mend_notebook
from kb.upkeep.check.notes import FINDINGS_MAX, Notes
from kb.upkeep.check.passages import check_passages, check_vectors
from kb.upkeep.check.records import check_counters, check_records
from kb.upkeep.check.repair import Repairer
from kb.upkeep.check.report import Checked, CheckReport, Finding

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
        notebook: NotebookPlace | None = None,
    ) -> None:
        """`fingerprint` and `dim` are those of the model in use."""
        self._store = store
        self._content = content
        self._lexical = lexical
        self._dense = dense
        self._fingerprint = fingerprint
        self._dim = dim
        self._notebook = notebook

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
                if self._notebook:
                    mend_notebook(self._notebook, mends, self._store.clock.now_ms())
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
        notes = _look_at_truth(self._store, self._content, self._fingerprint, self._dim)
        try:
            check_caches(self._store, notes, self._lexical, self._dense)
        except StoreDamaged as error:
            _note_damage(notes, "caches", error)
        if self._notebook:
            check_notebook(self._store, notes, self._notebook.root)
        return notes


def check_truth(store: Store, content: ContentStore, fingerprint: str, dim: int) -> CheckReport:
    """Compare records and files with what names them, and leave the caches alone.

    Nothing is written, so a home may be looked at that is to stay as it is.
    """
    notes = _look_at_truth(store, content, fingerprint, dim)
    return CheckReport(
        sound=not notes.findings,
        checked=Checked(**notes.counts),
        findings=tuple(notes.findings.values()),
        findings_left_out=notes.left_out,
    )


def _look_at_truth(store: Store, content: ContentStore, fingerprint: str, dim: int) -> Notes:
    notes = Notes()

    def step(name: str, look: Callable[[ReadTxn], None]) -> None:
        """One look in a transaction of its own; a page that cannot be read ends only this one."""
        try:
            with store.read() as txn:
                look(txn)
        except StoreDamaged as error:
            _note_damage(notes, name, error)

    step("records", lambda txn: check_records(txn, notes))
    step("counters", lambda txn: check_counters(txn, notes))
    step("docs", lambda txn: check_docs(txn, notes, fingerprint))
    step("jobs", lambda txn: check_jobs(txn, notes))
    step("chunks", lambda txn: check_passages(txn, notes, fingerprint))
    step("vectors", lambda txn: check_vectors(txn, notes, fingerprint, dim))
    step("files", lambda txn: check_files(txn, notes, content))
    step("files", lambda txn: drop_settled(txn, notes))
    return notes


def _note_damage(notes: Notes, name: str, error: StoreDamaged) -> None:
    advice = "restore the home from a backup"
    notes.add(name, f"cannot be read through: {error.fields['detail']}", ByHand(advice))


def _marked(found: Finding, repaired: bool) -> Finding:
    return msgspec.structs.replace(found, repaired=repaired)
