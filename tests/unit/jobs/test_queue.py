"""The queue, transition by transition."""

# Long because every transition is tried from every state.

from collections.abc import Callable, Iterator

import pytest
from fakes import FakeClock

from kb.errors import StaleToken
from kb.model.ids import DocId, JobId
from kb.model.job import Claim, Job, JobKind
from kb.store.jobs import queue
from kb.store.kv import WriteTxn
from kb.store.memory import MemoryEnvironment
from kb.store.meta import get_word

LEASE_MS = 60_000
JOB_TABLES = ("jobs", "jobs_ready", "jobs_running", "jobs_failed", "jobs_dedupe")


@pytest.fixture
def txn() -> Iterator[WriteTxn]:
    with MemoryEnvironment().write() as txn:
        yield txn


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def add(
    txn: WriteTxn, clock: FakeClock, doc: str = "d1", kind: JobKind = "chunk", attempts_max: int = 5
) -> JobId:
    key = queue.dedupe_key(kind, DocId(doc))
    return queue.enqueue(txn, clock, kind, DocId(doc), key=key, attempts_max=attempts_max)


def take(
    txn: WriteTxn, clock: FakeClock, *kinds: JobKind, limit: int = 1, lease_ms: int = LEASE_MS
) -> list[Claim]:
    return queue.claim(txn, clock, kinds or ("chunk", "embed"), limit=limit, lease_ms=lease_ms)


def take_one(txn: WriteTxn, clock: FakeClock) -> Claim:
    [claim] = take(txn, clock)
    return claim


def the(txn: WriteTxn, job_id: JobId) -> Job:
    job = queue.get(txn, job_id)
    assert job is not None
    return job


def docs_of(claims: list[Claim]) -> list[str]:
    return [claim.job.doc_id for claim in claims]


def snapshot(txn: WriteTxn) -> dict[str, list[tuple[bytes, bytes]]]:
    return {table: list(txn.scan(table)) for table in JOB_TABLES}


def counts(txn: WriteTxn) -> tuple[int, int, int]:
    found = queue.counts(txn)
    return found.ready, found.running, found.failed


def test_an_enqueued_job_is_ready(txn: WriteTxn, clock: FakeClock) -> None:
    """A new job is ready at once, unclaimed, stamped with the wall clock."""
    job = the(txn, add(txn, clock))
    assert (job.state, job.attempts, job.token, job.not_before_ms) == ("ready", 0, 0, 0)
    assert (job.enqueued_ms, job.priority, job.last_error) == (clock.now_ms(), 2, None)
    assert counts(txn) == (1, 0, 0)


def test_a_claim_takes_the_job(txn: WriteTxn, clock: FakeClock) -> None:
    """(a) A claimed job runs under a new token until its deadline, and nobody else gets it."""
    job_id = add(txn, clock)
    claim = take_one(txn, clock)
    assert (claim.job, claim.token, claim.lease_ms) == (the(txn, job_id), 1, LEASE_MS)
    assert (claim.job.state, claim.job.attempts) == ("running", 1)
    assert claim.job.deadline_ms == clock.lease_ms() + LEASE_MS
    assert (counts(txn), take(txn, clock)) == ((0, 1, 0), [])


def test_a_finished_job_is_gone(txn: WriteTxn, clock: FakeClock) -> None:
    """(c) Finishing leaves no record of the job in any table."""
    add(txn, clock)
    queue.finish(txn, take_one(txn, clock))
    assert [txn.count(table) for table in JOB_TABLES] == [0] * 5


def test_a_failed_attempt_waits(txn: WriteTxn, clock: FakeClock) -> None:
    """(d) With attempts left a failed job is ready again, after its back-off and no sooner."""
    job_id = add(txn, clock)
    assert queue.fail(txn, clock, take_one(txn, clock), "disk on fire") == "ready"
    job = the(txn, job_id)
    assert (job.last_error, job.attempts, job.deadline_ms) == ("disk on fire", 1, 0)
    clock.advance(1_999)
    assert take(txn, clock) == []
    clock.advance(1)
    assert take_one(txn, clock).token == 2


def test_back_off_times(txn: WriteTxn, clock: FakeClock) -> None:
    """Waits grow fourfold from two seconds up to ten minutes."""
    add(txn, clock, attempts_max=9)
    waits = []
    for _ in range(8):
        queue.fail(txn, clock, take_one(txn, clock), "no")
        waits.append(queue.due_in_ms(txn, clock))
        clock.advance(waits[-1] or 0)
    assert waits == [2_000, 8_000, 32_000, 128_000, 512_000, 600_000, 600_000, 600_000]


def test_the_last_attempt_fails_for_good(txn: WriteTxn, clock: FakeClock) -> None:
    """(d) With none left the job is failed with its reason, and is not claimed again."""
    job_id = add(txn, clock, attempts_max=2)
    queue.fail(txn, clock, take_one(txn, clock), "first")
    clock.advance(2_000)
    assert queue.fail(txn, clock, take_one(txn, clock), "second") == "failed"
    clock.advance(10**9)
    assert (take(txn, clock), counts(txn)) == ([], (0, 0, 1))
    assert [(job.job_id, job.last_error) for job in queue.failed(txn)] == [(job_id, "second")]


def test_a_permanent_failure_is_not_tried_again(txn: WriteTxn, clock: FakeClock) -> None:
    """(d) A permanent error is the job's last, whatever attempts are left."""
    add(txn, clock)
    claim = take_one(txn, clock)
    assert queue.fail(txn, clock, claim, "encrypted", permanent=True) == "failed"
    assert counts(txn) == (0, 0, 1)


def test_a_long_reason_is_cut(txn: WriteTxn, clock: FakeClock) -> None:
    """A reason of any length is kept up to 500 characters."""
    job_id = add(txn, clock)
    queue.fail(txn, clock, take_one(txn, clock), "x" * 9_999)
    assert the(txn, job_id).last_error == "x" * 500


def test_an_expired_lease_is_reclaimed(txn: WriteTxn, clock: FakeClock) -> None:
    """(e) A job past its deadline is ready at once, with an audit note, and not before."""
    job_id = add(txn, clock)
    take_one(txn, clock)
    clock.advance(LEASE_MS - 1)
    assert queue.reclaim(txn, clock) == []
    clock.advance(1)
    assert queue.reclaim(txn, clock) == [job_id]
    job = the(txn, job_id)
    assert (job.state, job.last_error, job.attempts) == ("ready", "claim_token_expired", 1)
    assert (take_one(txn, clock).token, queue.reclaim(txn, clock)) == (2, [])


def test_a_reclaimed_job_goes_to_the_end(txn: WriteTxn, clock: FakeClock) -> None:
    """(e) A job that lost its lease stands behind those that were waiting."""
    for doc in ("d1", "d2", "d3"):
        add(txn, clock, doc)
    take_one(txn, clock)
    clock.advance(LEASE_MS)
    queue.reclaim(txn, clock)
    assert [docs_of(take(txn, clock)) for _ in range(3)] == [["d2"], ["d3"], ["d1"]]


def test_expiry_of_the_last_attempt_fails(txn: WriteTxn, clock: FakeClock) -> None:
    """(e) A job that outlived its lease on every attempt is failed: it blocks nobody."""
    job_id = add(txn, clock, attempts_max=2)
    for _ in range(2):
        take_one(txn, clock)
        clock.advance(LEASE_MS)
        assert queue.reclaim(txn, clock) == [job_id]
    assert [job.last_error for job in queue.failed(txn)] == [queue.LEASE_LOST]


def test_retry_makes_failed_jobs_ready(txn: WriteTxn, clock: FakeClock) -> None:
    """(f) Every failed job is ready at once with its attempts counted anew; others stay."""
    for doc in ("d1", "d2", "d3"):
        add(txn, clock, doc, attempts_max=1)
    for _ in range(2):
        queue.fail(txn, clock, take_one(txn, clock), "no")
    assert (queue.retry_failed(txn), counts(txn)) == (2, (3, 0, 0))
    assert queue.retry_failed(txn) == 0
    assert [docs_of(take(txn, clock)) for _ in range(3)] == [["d3"], ["d1"], ["d2"]]
    assert [job.attempts for job in queue.running(txn)] == [1, 1, 1]


def test_one_failed_job_is_retried_alone(txn: WriteTxn, clock: FakeClock) -> None:
    """(f) The others stay failed; a job that has not failed, or is not there, is none of them."""
    for doc in ("d1", "d2", "d3"):
        add(txn, clock, doc, attempts_max=1)
    first, _ = [take_one(txn, clock) for _ in range(2)]
    queue.fail(txn, clock, first, "no")
    for ident in ("j9", "j000000000002", ""):
        assert queue.retry_failed(txn, ident) == 0
    assert (queue.retry_failed(txn, first.job.job_id), counts(txn)) == (1, (2, 1, 0))


def test_the_jobs_of_a_doc_are_found(txn: WriteTxn, clock: FakeClock) -> None:
    """Whatever their state, and none of another doc whose id begins alike."""
    for doc, kind in (("d1", "chunk"), ("d1", "embed"), ("d12", "embed")):
        key = queue.dedupe_key(kind, DocId(doc), "model" if kind == "embed" else "")
        queue.enqueue(txn, clock, kind, DocId(doc), key=key)
    queue.fail(txn, clock, take_one(txn, clock), "no", permanent=True)
    found = [(job.kind, job.state) for job in queue.of_doc(txn, DocId("d1"))]
    assert found == [("chunk", "failed"), ("embed", "ready")]


def test_only_drawn_transitions_exist() -> None:
    """The table holds the five lettered transitions of the drawing and no other."""
    drawn = {("ready", "claim"), ("running", "finish"), ("running", "fail")}
    drawn |= {("running", "expire"), ("failed", "retry")}
    assert set(queue.TRANSITIONS) == drawn
    assert queue.__doc__ is not None
    assert all(f"({letter})" in queue.__doc__ for letter in "acdef")


def test_equal_work_is_one_job(txn: WriteTxn, clock: FakeClock) -> None:
    """While a job is ready or running, asking for the same work returns it and writes nothing."""
    job_id = add(txn, clock)
    before = snapshot(txn)
    assert (add(txn, clock), snapshot(txn)) == (job_id, before)
    take_one(txn, clock)
    before = snapshot(txn)
    assert (add(txn, clock), snapshot(txn)) == (job_id, before)


def test_other_work_is_another_job(txn: WriteTxn, clock: FakeClock) -> None:
    """Kind, doc and model each make other work."""
    keys = {
        queue.dedupe_key(kind, DocId(doc), model)
        for kind in ("chunk", "embed")
        for doc in ("d1", "d2")
        for model in ("", "m1", "m2")
    }
    ids = {queue.enqueue(txn, clock, "embed", DocId("d1"), key=key) for key in keys}
    assert (len(keys), len(ids)) == (12, 12)


def test_finished_work_may_be_asked_for_again(txn: WriteTxn, clock: FakeClock) -> None:
    """Once a job is done, the same work is a new job with a new id."""
    first = add(txn, clock)
    queue.finish(txn, take_one(txn, clock))
    assert add(txn, clock) != first
    assert counts(txn) == (1, 0, 0)


def test_asking_anew_replaces_a_failed_job(txn: WriteTxn, clock: FakeClock) -> None:
    """A failed job gives way to a new one with all its attempts; only one is left."""
    first = add(txn, clock)
    queue.fail(txn, clock, take_one(txn, clock), "no", permanent=True)
    second = add(txn, clock)
    assert (second != first, queue.get(txn, first), counts(txn)) == (True, None, (1, 0, 0))
    assert (the(txn, second).attempts, add(txn, clock)) == (0, second)


def test_a_dedupe_key_of_any_length(txn: WriteTxn, clock: FakeClock) -> None:
    """A key longer than a store key can be still dedupes, and leaves nothing behind."""
    key = "embed:" + "x" * 2_000
    ids = [queue.enqueue(txn, clock, "embed", DocId("d1"), key=key) for _ in range(2)]
    assert ids[0] == ids[1]
    queue.finish(txn, take_one(txn, clock))
    assert txn.count("jobs_dedupe") == 0


def test_urgent_first_then_oldest(txn: WriteTxn, clock: FakeClock) -> None:
    """Chunk jobs go before embed jobs; equals go in the order they came."""
    add(txn, clock, "d1", "embed")
    for doc in ("d2", "d3"):
        add(txn, clock, doc, "chunk")
    assert [docs_of(take(txn, clock)) for _ in range(4)] == [["d2"], ["d3"], ["d1"], []]


def test_a_claim_is_of_one_kind_and_limited(txn: WriteTxn, clock: FakeClock) -> None:
    """One call hands out up to `limit` jobs, all of the kind of the most urgent."""
    for number in range(3):
        add(txn, clock, f"d{number}", "embed")
        add(txn, clock, f"d{number}", "chunk")
    assert docs_of(take(txn, clock, limit=2)) == ["d0", "d1"]
    rest = take(txn, clock, limit=10)
    assert [(c.job.kind, c.job.doc_id) for c in rest] == [("chunk", "d2")]
    assert len(take(txn, clock, limit=10)) == 3


def test_a_claim_keeps_to_its_kinds(txn: WriteTxn, clock: FakeClock) -> None:
    """Kinds that were not asked for stay ready, also where they are more urgent."""
    add(txn, clock, "d1", "chunk")
    add(txn, clock, "d2", "embed")
    assert docs_of(take(txn, clock, "embed", limit=9)) == ["d2"]
    assert take(txn, clock, "embed") == []
    assert queue.claim(txn, clock, (), limit=9, lease_ms=1) == []


@pytest.mark.parametrize("ending", ["fail", "expire", "retry"])
def test_a_job_that_failed_is_handed_out_alone(
    txn: WriteTxn, clock: FakeClock, ending: str
) -> None:
    """However it came back, a job that may have killed its worker takes no others down with it."""
    add(txn, clock, "d1")
    claim = take_one(txn, clock)
    match ending:
        case "fail":
            queue.fail(txn, clock, claim, "no")
            clock.advance(2_000)
        case "expire":
            clock.advance(LEASE_MS)
            queue.reclaim(txn, clock)
        case _:
            queue.fail(txn, clock, claim, "no", permanent=True)
            queue.retry_failed(txn)
    for doc in ("d2", "d3"):
        add(txn, clock, doc)
    batches = [sorted(docs_of(take(txn, clock, limit=9))) for _ in range(2)]
    assert sorted(batches) == [["d1"], ["d2", "d3"]]


def test_a_released_job_is_handed_out_with_others(txn: WriteTxn, clock: FakeClock) -> None:
    """Its worker had too much, or was told to stop: the job did nothing."""
    add(txn, clock, "d1")
    queue.release(txn, take_one(txn, clock))
    add(txn, clock, "d2")
    assert sorted(docs_of(take(txn, clock, limit=9))) == ["d1", "d2"]


def stale_by_reclaim(txn: WriteTxn, clock: FakeClock, claim: Claim) -> None:
    clock.advance(LEASE_MS)
    queue.reclaim(txn, clock)


def stale_by_new_claim(txn: WriteTxn, clock: FakeClock, claim: Claim) -> None:
    stale_by_reclaim(txn, clock, claim)
    assert take_one(txn, clock).token == claim.token + 1


def stale_by_finish(txn: WriteTxn, clock: FakeClock, claim: Claim) -> None:
    queue.finish(txn, claim)


def stale_by_failing(txn: WriteTxn, clock: FakeClock, claim: Claim) -> None:
    queue.fail(txn, clock, claim, "no", permanent=True)


def stale_by_release(txn: WriteTxn, clock: FakeClock, claim: Claim) -> None:
    queue.release(txn, claim)


@pytest.mark.parametrize("act", ["renew", "finish", "fail", "release"])
@pytest.mark.parametrize(
    "lose",
    [stale_by_reclaim, stale_by_new_claim, stale_by_finish, stale_by_failing, stale_by_release],
)
def test_a_stale_token_changes_nothing(
    txn: WriteTxn,
    clock: FakeClock,
    act: str,
    lose: Callable[[WriteTxn, FakeClock, Claim], None],
) -> None:
    """Whoever lost a job gets StaleToken from every call, and no table moves."""
    job_id = add(txn, clock)
    claim = take_one(txn, clock)
    lose(txn, clock, claim)
    before = snapshot(txn)
    calls: dict[str, Callable[[], object]] = {
        "renew": lambda: queue.renew(txn, clock, claim),
        "finish": lambda: queue.finish(txn, claim),
        "fail": lambda: queue.fail(txn, clock, claim, "late"),
        "release": lambda: queue.release(txn, claim),
    }
    with pytest.raises(StaleToken, match=f"job {job_id} is no longer held under token 1"):
        calls[act]()
    assert snapshot(txn) == before


def test_renewing_moves_the_deadline(txn: WriteTxn, clock: FakeClock) -> None:
    """A renewed lease counts from the renewal, with the same token, as often as one likes."""
    add(txn, clock)
    claim = take_one(txn, clock)
    for _ in range(3):
        clock.advance(LEASE_MS - 1)
        queue.renew(txn, clock, claim)
        assert queue.reclaim(txn, clock) == []
    clock.advance(LEASE_MS)
    assert queue.reclaim(txn, clock) == [claim.job.job_id]


def test_a_late_holder_that_nobody_replaced_may_finish(txn: WriteTxn, clock: FakeClock) -> None:
    """Past the deadline, but not yet reclaimed, the result still counts."""
    add(txn, clock)
    claim = take_one(txn, clock)
    clock.advance(LEASE_MS * 2)
    queue.finish(txn, claim)
    assert counts(txn) == (0, 0, 0)


def test_releasing_does_not_count(txn: WriteTxn, clock: FakeClock) -> None:
    """A released job is ready at once, with the attempts it had, however often that happens."""
    job_id = add(txn, clock, attempts_max=1)
    for _ in range(4):
        queue.release(txn, take_one(txn, clock))
        assert (the(txn, job_id).state, the(txn, job_id).attempts) == ("ready", 0)
    assert take_one(txn, clock).token == 5


def test_a_reboot_releases_everything(txn: WriteTxn, clock: FakeClock) -> None:
    """After a reboot the lease clock says nothing: held jobs come back, waits are over."""
    held, waiting = add(txn, clock, "d1"), add(txn, clock, "d2")
    take_one(txn, clock)
    queue.fail(txn, clock, take_one(txn, clock), "no")
    clock.reboot(lease_ms=5)
    assert queue.reclaim(txn, clock) == []
    assert the(txn, held).last_error == queue.LEASE_LOST
    assert the(txn, waiting).not_before_ms == 0
    assert {c.job.job_id for _ in range(2) for c in take(txn, clock)} == {held, waiting}
    assert get_word(txn, "boot") == clock.boot_id()


def test_a_claim_notices_a_reboot(txn: WriteTxn, clock: FakeClock) -> None:
    """A claim right after a reboot gets what was held before it, under a new token."""
    add(txn, clock)
    stale = take_one(txn, clock)
    clock.reboot()
    assert take_one(txn, clock).token == 2
    with pytest.raises(StaleToken):
        queue.finish(txn, stale)


def test_a_reboot_counts_as_an_attempt(txn: WriteTxn, clock: FakeClock) -> None:
    """A job that runs each time the machine goes down ends as failed, not as a loop."""
    add(txn, clock, attempts_max=3)
    for _ in range(3):
        take_one(txn, clock)
        clock.reboot()
    assert (take(txn, clock), counts(txn)) == ([], (0, 0, 1))


@pytest.mark.parametrize("jump_ms", [-(10**12), 10**12])
def test_the_wall_clock_may_jump(txn: WriteTxn, clock: FakeClock, jump_ms: int) -> None:
    """Leases, back-off and order do not move with the wall clock, whichever way it is set."""
    add(txn, clock, "d1")
    queue.fail(txn, clock, take_one(txn, clock), "no")
    add(txn, clock, "d2")
    held = take_one(txn, clock)
    clock.jump(jump_ms)
    assert (queue.reclaim(txn, clock), take(txn, clock)) == ([], [])
    assert queue.due_in_ms(txn, clock) == 2_000
    queue.renew(txn, clock, held)
    clock.advance(2_000)
    assert docs_of(take(txn, clock)) == ["d1"]


def test_when_the_next_is_due(txn: WriteTxn, clock: FakeClock) -> None:
    """None without ready jobs, 0 where one may be claimed, else the shortest wait of any kind."""
    assert queue.due_in_ms(txn, clock) is None
    add(txn, clock, "d1", "chunk")
    assert queue.due_in_ms(txn, clock) == 0
    claim = take_one(txn, clock)
    assert queue.due_in_ms(txn, clock) is None
    queue.fail(txn, clock, claim, "no")
    clock.advance(500)
    assert queue.due_in_ms(txn, clock) == 1_500
    add(txn, clock, "d2", "embed")
    assert queue.due_in_ms(txn, clock) == 0
    clock.advance(9_999)
    assert queue.due_in_ms(txn, clock) == 0


def test_which_of_a_kind_are_pending(txn: WriteTxn, clock: FakeClock) -> None:
    """Ready and running jobs of the kind; failed and other ones are not."""
    for number in range(4):
        add(txn, clock, f"d{number}", "embed")
    add(txn, clock, "d9", "chunk")
    take(txn, clock, "embed", limit=2)
    assert sorted(job.doc_id for job in queue.pending(txn, "embed")) == ["d0", "d1", "d2", "d3"]
    assert [job.doc_id for job in queue.pending(txn, "chunk")] == ["d9"]
    [claim] = take(txn, clock, "embed")
    queue.fail(txn, clock, claim, "no", permanent=True)
    assert len(list(queue.pending(txn, "embed"))) == 3


def test_a_job_without_a_record_is_not_listed(txn: WriteTxn, clock: FakeClock) -> None:
    """An unknown id is None, and lists of an empty queue are empty."""
    assert queue.get(txn, JobId("j1")) is None
    assert (list(queue.failed(txn)), list(queue.running(txn)), counts(txn)) == ([], [], (0, 0, 0))


def test_retrying_counts_what_failed_and_waits() -> None:
    """A job that failed and waits is counted; one that is merely ready, or came back, is not."""
    clock = FakeClock()
    with MemoryEnvironment().write() as txn:
        for name in ("da", "db", "dc"):
            queue.enqueue(txn, clock, "chunk", DocId(name), key=name)
        first, second, _ = queue.claim(txn, clock, ("chunk",), limit=3, lease_ms=LEASE_MS)
        queue.fail(txn, clock, first, "no luck")
        queue.release(txn, second)
        assert queue.retrying(txn) == 1
