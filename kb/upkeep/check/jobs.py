"""Check that every job is in the list of its state and under its dedupe key."""

from typing import Final

from kb.store.jobs import queue
from kb.store.keys import text_key
from kb.store.kv import ReadTxn
from kb.store.records import JOBS, JOBS_DEDUPE, JOBS_FAILED, JOBS_READY, JOBS_RUNNING
from kb.upkeep.check.collector import FindingCollector
from kb.upkeep.check.lookup import find
from kb.upkeep.check.repairs import RewriteJobLists

_LISTS: Final = {records.name: records for records in (JOBS_READY, JOBS_RUNNING, JOBS_FAILED)}


def check_jobs(txn: ReadTxn, collector: FindingCollector) -> None:
    """Check jobs against their lists and dedupe keys.

    Extra rows are found by counting: every job is listed once, so equal counts leave none.
    """
    jobs = 0
    for key, _ in txn.scan("jobs"):
        job = find(JOBS, txn, key)
        if job is None:
            continue
        jobs += 1
        table, place = queue.listing(job)
        ref = find(_LISTS[table], txn, place)
        if ref is None or ref.job_id != job.job_id:
            collector.add(job.job_id, f"it is not among the {job.state} jobs", RewriteJobLists())
        by_key = find(JOBS_DEDUPE, txn, text_key(job.dedupe_key))
        if by_key is None or by_key.job_id != job.job_id:
            collector.add(job.job_id, "its dedupe key does not lead to it", RewriteJobLists())
    if sum(txn.count(table) for table in _LISTS) != jobs or txn.count("jobs_dedupe") != jobs:
        collector.add("jobs", "a list names a job that does not exist", RewriteJobLists())
