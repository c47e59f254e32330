"""Does every job stand in the list of its state and under its work, and nothing else?"""

from typing import Final

from kb.store.jobs import queue
from kb.store.keys import text_key
from kb.store.kv import ReadTxn
from kb.store.records import JOBS, JOBS_DEDUPE, JOBS_FAILED, JOBS_READY, JOBS_RUNNING
from kb.upkeep.check.lookup import find
from kb.upkeep.check.mends import Relist
from kb.upkeep.check.notes import Notes

_LISTS: Final = {records.table: records for records in (JOBS_READY, JOBS_RUNNING, JOBS_FAILED)}


def check_jobs(txn: ReadTxn, notes: Notes) -> None:
    """Jobs against their lists and dedupe keys. Where all are there and no more, none is extra."""
    jobs = 0
    for key, _ in txn.scan("jobs"):
        job = find(JOBS, txn, key)
        if job is None:
            continue
        jobs += 1
        table, place = queue.listing(job)
        listed = find(_LISTS[table], txn, place)
        if listed is None or listed.job_id != job.job_id:
            notes.add(job.job_id, f"it is not among the {job.state} jobs", Relist())
        known = find(JOBS_DEDUPE, txn, text_key(job.dedupe_key))
        if known is None or known.job_id != job.job_id:
            notes.add(job.job_id, "it is not known by its work", Relist())
    if sum(txn.count(table) for table in _LISTS) != jobs or txn.count("jobs_dedupe") != jobs:
        notes.add("jobs", "a list names a job that is not there", Relist())
