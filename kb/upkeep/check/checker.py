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
from kb.upkeep.check.chunks import check_chunks, check_vectors
from kb.upkeep.check.collector import FINDINGS_MAX, FindingCollector
from kb.upkeep.check.docs import check_docs
from kb.upkeep.check.files import check_files, drop_removed_docs
from kb.upkeep.check.jobs import check_jobs
from kb.upkeep.check.notebook import NotebookPlace, check_notebook, repair_notebook
from kb.upkeep.check.records import check_counters, check_records
from kb.upkeep.check.repairer import Repairer
from kb.upkeep.check.repairs import ManualRepair, Repair
from kb.upkeep.check.report import CheckCounts, CheckReport, Finding

# A mend may bring out what another finding hid; each round mends one layer.
_ROUNDS_MAX: Final = 4


class HomeChecker:
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
        collector = self._check_all()
        all_findings = dict(collector.findings)
        left_out = collector.left_out
        if repair:
            repairer = Repairer(
                self._store, self._content, self._lexical, self._dense, self._fingerprint
            )
            previous: Sequence[Repair] = ()
            for _ in range(_ROUNDS_MAX):
                repairs = [item for item in collector.repairs if not isinstance(item, ManualRepair)]
                if not repairs or repairs == previous:
                    break
                repairer.apply(repairs)
                if self._notebook:
                    repair_notebook(self._notebook, repairs, self._store.clock.now_ms())
                previous, collector = repairs, self._check_all()
                all_findings |= collector.findings
                left_out = collector.left_out
        findings = [
            _with_repaired(finding, key not in collector.findings)
            for key, finding in all_findings.items()
        ]
        return CheckReport(
            sound=not collector.findings,
            checked=CheckCounts(**collector.counts),
            findings=tuple(findings[:FINDINGS_MAX]),
            findings_left_out=left_out + len(findings[FINDINGS_MAX:]),
        )

    def _check_all(self) -> FindingCollector:
        collector = _check_without_caches(self._store, self._content, self._fingerprint, self._dim)
        try:
            check_caches(self._store, collector, self._lexical, self._dense)
        except StoreDamaged as error:
            _add_damage(collector, "caches", error)
        if self._notebook:
            check_notebook(self._store, collector, self._notebook.root)
        return collector


def check_without_caches(
    store: Store, content: ContentStore, fingerprint: str, dim: int
) -> CheckReport:
    """Compare records and files with what names them, and leave the caches alone.

    Nothing is written, so a home may be looked at that is to stay as it is.
    """
    collector = _check_without_caches(store, content, fingerprint, dim)
    return CheckReport(
        sound=not collector.findings,
        checked=CheckCounts(**collector.counts),
        findings=tuple(collector.findings.values()),
        findings_left_out=collector.left_out,
    )


def _check_without_caches(
    store: Store, content: ContentStore, fingerprint: str, dim: int
) -> FindingCollector:
    collector = FindingCollector()

    def step(name: str, check: Callable[[ReadTxn], None]) -> None:
        """One look in a transaction of its own; a page that cannot be read ends only this one."""
        try:
            with store.read() as txn:
                check(txn)
        except StoreDamaged as error:
            _add_damage(collector, name, error)

    step("records", lambda txn: check_records(txn, collector))
    step("counters", lambda txn: check_counters(txn, collector))
    step("docs", lambda txn: check_docs(txn, collector, fingerprint))
    step("jobs", lambda txn: check_jobs(txn, collector))
    step("chunks", lambda txn: check_chunks(txn, collector, fingerprint))
    step("vectors", lambda txn: check_vectors(txn, collector, fingerprint, dim))
    step("files", lambda txn: check_files(txn, collector, content))
    step("files", lambda txn: drop_removed_docs(txn, collector))
    return collector


def _add_damage(collector: FindingCollector, name: str, error: StoreDamaged) -> None:
    advice = "restore the home from a backup"
    collector.add(name, f"cannot be read through: {error.fields['detail']}", ManualRepair(advice))


def _with_repaired(finding: Finding, repaired: bool) -> Finding:
    return msgspec.structs.replace(finding, repaired=repaired)
