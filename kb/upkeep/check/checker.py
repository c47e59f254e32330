"""Run every check in order, and check again after each round of repairs."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kb.errors import StoreDamaged
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
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

# A repair may uncover what another finding hid, so checks and repairs run in rounds.
_ROUNDS_MAX: Final = 4


class HomeChecker:
    """Checks a home's records, files, caches and notebook. Safe while others use the home."""

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
        """Check everything; with `repair`, repair what can be repaired and check again.

        Without `repair` only the caches may change: they catch up, as for a search. Pending jobs
        are no findings. A repair may raise StoreFull and ReadOnlyHome.
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
    """Check records and files, but not the caches. Writes nothing."""
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
        """One check in its own transaction; an unreadable page ends only this check."""
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
    collector.add(
        name, f"cannot be read to its end: {error.fields['detail']}", ManualRepair(advice)
    )


def _with_repaired(finding: Finding, repaired: bool) -> Finding:
    return msgspec.structs.replace(finding, repaired=repaired)
