"""Store and jobs against plain dictionaries, whatever is done to them in whatever order."""

# Long because a state machine is one class.

import itertools
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from builders import make_chunk, make_doc
from fakes import FakeClock
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from kb.errors import StaleToken
from kb.model.doc import Doc
from kb.model.ids import DocId, JobId
from kb.model.job import Claim, JobKind
from kb.model.text import Mention
from kb.store import chunks, docs
from kb.store.codec import from_u64, u64
from kb.store.jobs import queue
from kb.store.keys import entity_prefix, facet_key, text_key
from kb.store.kv import Environment, ReadTxn, WriteTxn
from kb.store.lmdb_env import LmdbEnvironment
from kb.store.memory import MemoryEnvironment
from kb.store.meta import next_number
from kb.store.records import (
    CHUNK_IDS,
    CHUNKS,
    ENTITIES,
    JOBS,
    JOBS_DEDUPE,
    JOBS_FAILED,
    JOBS_READY,
    JOBS_RUNNING,
    SOURCE_CHUNKS,
)
from kb.store.store import Store

KINDS: tuple[JobKind, ...] = ("chunk", "embed")
LEASE_MS = 10_000
ATTEMPTS_MAX = 3
BACKOFF_MS = {1: 2_000, 2: 8_000, 3: 32_000}
JOBS_WANTED = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(["d1", "d2", "d3"])), min_size=1, max_size=4
)
KINDS_WANTED = st.sampled_from([KINDS, KINDS, ("embed",), ("chunk",), ()])
SOURCES = st.integers(1, 3)
TAGS = st.lists(st.sampled_from(["a", "ab", "标签"]), max_size=2, unique=True)
WORDS = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=4, unique=True)
MENTIONS = {
    "one": Mention(kind="hashtag", surface="#x", key="hashtag:x"),
    "two": Mention(kind="hashtag", surface="#x", key="hashtag:x"),
    "three": Mention(kind="email", surface="a@b.c", key="email:a@b.c"),
}


class ModelJob:
    """What a person would remember of a job."""

    def __init__(self, job_id: JobId, kind: JobKind, key: str, place: int) -> None:
        self.job_id, self.kind, self.key, self.place = job_id, kind, key, place
        self.state = "ready"
        self.attempts = self.token = self.not_before_ms = self.deadline_ms = 0
        self.error: str | None = None


class StoreAndJobs(RuleBasedStateMachine):
    """Every rule acts on the store and on the model; the invariants compare the two."""

    make_env: ClassVar[Callable[[Path], Environment]]

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.store = Store(type(self).make_env(Path(self.folder.name)), self.clock)
        self.jobs: dict[JobId, ModelJob] = {}
        self.claims: list[Claim] = []
        self.places = 0
        self.booted = True
        self.latest: dict[int, Doc] = {}
        self.versions: dict[int, list[str]] = {}
        self.passages: dict[int, list[tuple[int, str]]] = {}
        # The first claim of a home's life notices its first boot; nothing is held yet.
        with self.store.write() as txn:
            queue.reclaim(txn, self.clock)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def next_place(self) -> int:
        self.places += 1
        return self.places

    def to_ready(self, job: ModelJob) -> None:
        job.state, job.place = "ready", self.next_place()

    def give_back(
        self, job: ModelJob, error: str, wait_ms: int, *, permanent: bool = False
    ) -> None:
        job.error = error
        job.not_before_ms = self.clock.lease_ms() + wait_ms if wait_ms else 0
        if permanent or job.attempts >= ATTEMPTS_MAX:
            job.state = "failed"
        else:
            self.to_ready(job)

    def in_state(self, state: str) -> list[ModelJob]:
        return sorted((j for j in self.jobs.values() if j.state == state), key=lambda j: j.job_id)

    def notice_reboot(self) -> None:
        if self.booted:
            return
        self.booted = True
        for job in self.in_state("running"):
            self.give_back(job, queue.LEASE_LOST, 0)
        for job in self.in_state("ready"):
            job.not_before_ms = 0

    # The rules: jobs.

    @initialize(wanted=JOBS_WANTED)
    def enqueue_some(self, wanted: list[tuple[JobKind, str]]) -> None:
        self.enqueue(wanted)

    @rule(wanted=JOBS_WANTED)
    def enqueue(self, wanted: list[tuple[JobKind, str]]) -> None:
        for kind, doc in wanted:
            self.enqueue_one(kind, doc)

    def enqueue_one(self, kind: JobKind, doc: str) -> None:
        key = queue.dedupe_key(kind, DocId(doc))
        with self.store.write() as txn:
            got = queue.enqueue(
                txn, self.clock, kind, DocId(doc), key=key, attempts_max=ATTEMPTS_MAX
            )
        known = next((job for job in self.jobs.values() if job.key == key), None)
        if known is not None and known.state != "failed":
            assert got == known.job_id
            return
        if known is not None:
            del self.jobs[known.job_id]
        assert got not in self.jobs
        self.jobs[got] = ModelJob(got, kind, key, self.next_place())

    @rule(kinds=KINDS_WANTED, limit=st.integers(1, 3))
    def claim(self, kinds: tuple[JobKind, ...], limit: int) -> None:
        with self.store.write() as txn:
            got = queue.claim(txn, self.clock, kinds, limit=limit, lease_ms=LEASE_MS)
        self.notice_reboot()
        expected = self.claimable(kinds, limit)
        assert [claim.job.job_id for claim in got] == [job.job_id for job in expected]
        for job, claim in zip(expected, got, strict=True):
            job.state, job.attempts, job.token = "running", job.attempts + 1, job.token + 1
            job.deadline_ms = self.clock.lease_ms() + LEASE_MS
            assert (claim.token, claim.job.attempts) == (job.token, job.attempts)
        self.claims += got

    def claimable(self, kinds: Iterable[JobKind], limit: int) -> list[ModelJob]:
        due = [
            job
            for job in self.in_state("ready")
            if job.kind in kinds and job.not_before_ms <= self.clock.lease_ms()
        ]
        due.sort(key=lambda job: (queue.PRIORITY[job.kind], job.not_before_ms, job.place))
        # A job that failed or lost its holder may end its worker: it is claimed alone.
        if not due or due[0].error is not None:
            return due[:1]
        first = [job for job in due if job.kind == due[0].kind][:limit]
        return [job for job in first if job.error is None]

    def act(self, claim: Claim, call: Callable[[WriteTxn], object]) -> ModelJob | None:
        """Do it; None where the model says the claim is stale, and then the store must too."""
        job = self.jobs.get(claim.job.job_id)
        if job is not None and job.state == "running" and job.token == claim.token:
            with self.store.write() as txn:
                call(txn)
            return job
        with pytest.raises(StaleToken), self.store.write() as txn:
            call(txn)
        return None

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(1, 4), end=st.sampled_from(["renew", "finish", "fail", "release"]))
    def settle(self, back: int, end: str) -> None:
        claim = self.claims[-min(back, len(self.claims))]
        match end:
            case "renew":
                self.renew(claim)
            case "finish":
                self.finish(claim)
            case "fail":
                self.fail(claim, permanent=False)
            case _:
                self.release(claim)

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(1, 4), permanent=st.booleans())
    def settle_badly(self, back: int, permanent: bool) -> None:
        self.fail(self.claims[-min(back, len(self.claims))], permanent=permanent)

    def renew(self, claim: Claim) -> None:
        job = self.act(claim, lambda txn: queue.renew(txn, self.clock, claim))
        if job is not None:
            job.deadline_ms = self.clock.lease_ms() + LEASE_MS

    def finish(self, claim: Claim) -> None:
        job = self.act(claim, lambda txn: queue.finish(txn, claim))
        if job is not None:
            del self.jobs[job.job_id]

    def fail(self, claim: Claim, *, permanent: bool) -> None:
        job = self.act(
            claim, lambda txn: queue.fail(txn, self.clock, claim, "no", permanent=permanent)
        )
        if job is not None:
            self.give_back(job, "no", BACKOFF_MS[job.attempts], permanent=permanent)

    def release(self, claim: Claim) -> None:
        job = self.act(claim, lambda txn: queue.release(txn, claim))
        if job is not None:
            job.attempts -= 1
            self.to_ready(job)

    @rule()
    def reclaim(self) -> None:
        with self.store.write() as txn:
            got = queue.reclaim(txn, self.clock)
        self.notice_reboot()
        expired = [j for j in self.in_state("running") if j.deadline_ms <= self.clock.lease_ms()]
        assert got == [job.job_id for job in expired]
        for job in expired:
            self.give_back(job, queue.LEASE_LOST, 0)

    @rule()
    def retry_failed(self) -> None:
        failed = self.in_state("failed")
        with self.store.write() as txn:
            assert queue.retry_failed(txn) == len(failed)
        for job in failed:
            job.attempts = job.not_before_ms = 0
            self.to_ready(job)

    @rule(
        ms=st.sampled_from([1, 1_999, 2_000, 8_000, LEASE_MS, LEASE_MS]),
        wall_ms=st.integers(-(10**9), 10**9),
    )
    def let_time_pass(self, ms: int, wall_ms: int) -> None:
        self.clock.advance(ms)
        self.clock.jump(wall_ms)

    @rule(lease_ms=st.integers(0, 5_000))
    def reboot(self, lease_ms: int) -> None:
        self.clock.reboot(lease_ms)
        self.booted = False

    # The rules: docs and passages.

    @rule(source=SOURCES, tags=TAGS, visibility=st.sampled_from(["public", "private"]))
    def put_version(self, source: int, tags: list[str], visibility: str) -> None:
        version = len(self.versions.get(source, [])) + 1
        doc = make_doc(source, version, tags=tuple(tags), visibility=visibility)
        with self.store.write() as txn:
            docs.put_new_version(txn, doc)
        self.latest[source] = doc
        self.versions.setdefault(source, []).append(doc.doc_id)

    @precondition(lambda self: self.latest)
    @rule(data=st.data(), tags=TAGS, status=st.sampled_from(["active", "tombstoned"]))
    def rewrite(self, data: st.DataObject, tags: list[str], status: str) -> None:
        source = data.draw(st.sampled_from(sorted(self.latest)))
        doc = msgspec.structs.replace(self.latest[source], tags=tuple(tags), status=status)
        with self.store.write() as txn:
            docs.replace(txn, doc)
        self.latest[source] = doc

    @rule(source=SOURCES, words=WORDS)
    def replace_passages(self, source: int, words: list[str]) -> None:
        known = {text: no for no, text in self.passages.get(source, [])}
        with self.store.write() as txn:
            new = [(known.get(text) or next_number(txn, "chunk"), text) for text in words]
            made = [
                make_chunk(no, text, source_no=source, ordinal=ordinal, mentions=mentions_of(text))
                for ordinal, (no, text) in enumerate(new)
            ]
            gone = chunks.replace_all(
                txn, source, made, {no: list(mentions_of(text)) for no, text in new}
            )
        expected = [no for no, text in self.passages.get(source, []) if text not in words]
        assert [chunk.no for chunk in gone] == expected
        self.passages[source] = new

    @rule(source=SOURCES, words=WORDS)
    def half_a_change(self, source: int, words: list[str]) -> None:
        """A transaction that does a bit of everything, then fails: nothing of it is kept."""
        with pytest.raises(KeyboardInterrupt), self.store.write() as txn:
            self.do_much_and_fail(txn, source, words)

    def do_much_and_fail(self, txn: WriteTxn, source: int, words: list[str]) -> None:
        queue.claim(txn, self.clock, KINDS, limit=3, lease_ms=LEASE_MS)
        queue.retry_failed(txn)
        docs.put_new_version(txn, make_doc(source, 99, tags=tuple(words)))
        chunks.delete_all(txn, source)
        raise KeyboardInterrupt

    # The invariants.

    @invariant()
    def jobs_are_as_remembered(self) -> None:
        with self.store.read() as txn:
            found = {job.job_id: job for _, job in JOBS.scan(txn)}
            assert found.keys() == self.jobs.keys()
            for job_id, job in found.items():
                wanted = self.jobs[job_id]
                got = (job.state, job.attempts, job.token, job.last_error, job.kind)
                assert got == (
                    wanted.state,
                    wanted.attempts,
                    wanted.token,
                    wanted.error,
                    wanted.kind,
                )
                if job.state == "running":
                    assert job.deadline_ms == wanted.deadline_ms
                if job.state == "ready":
                    assert job.not_before_ms == wanted.not_before_ms
            counts = queue.counts(txn)
            assert (counts.ready, counts.running, counts.failed) == tuple(
                len(self.in_state(state)) for state in ("ready", "running", "failed")
            )

    @invariant()
    def job_tables_agree(self) -> None:
        with self.store.read() as txn:
            found = [job for _, job in JOBS.scan(txn)]
            ready = {
                bytes([job.priority]) + u64(job.not_before_ms) + u64(job.order): job.job_id
                for job in found
                if job.state == "ready"
            }
            assert {key: ref.job_id for key, ref in JOBS_READY.scan(txn)} == ready
            for records, state in ((JOBS_RUNNING, "running"), (JOBS_FAILED, "failed")):
                listed = {key: ref.job_id for key, ref in records.scan(txn)}
                assert listed == {
                    job.job_id.encode(): job.job_id for job in found if job.state == state
                }
            dedupe = {key: ref.job_id for key, ref in JOBS_DEDUPE.scan(txn)}
            assert dedupe == {text_key(job.dedupe_key): job.job_id for job in found}

    @invariant()
    def due_time_is_right(self) -> None:
        waits = [max(0, j.not_before_ms - self.clock.lease_ms()) for j in self.in_state("ready")]
        with self.store.read() as txn:
            assert queue.due_in_ms(txn, self.clock) == min(waits, default=None)
            for kind in KINDS:
                pending = [
                    job for job in self.jobs.values() if job.kind == kind and job.state != "failed"
                ]
                assert len(list(queue.pending(txn, kind))) == len(pending)

    @invariant()
    def docs_are_as_remembered(self) -> None:
        with self.store.read() as txn:
            assert {doc.source_no: doc for doc in docs.all_latest(txn)} == self.latest
            for source, ids in self.versions.items():
                assert list(docs.versions(txn, source)) == ids
                older = [docs.get(txn, doc_id) for doc_id in ids[:-1]]
                assert all(doc is not None and doc.status != "active" for doc in older)

    @invariant()
    def facets_are_of_active_latest_docs(self) -> None:
        expected = {
            facet_key(name, value, source)
            for source, doc in self.latest.items()
            if doc.status == "active"
            for name, value in [
                ("kind", doc.kind),
                ("audience", doc.audience),
                ("source", doc.source),
                *[("tag", tag) for tag in doc.tags],
            ]
        }
        with self.store.read() as txn:
            assert [key for key, _ in txn.scan("facets")] == sorted(expected)

    @invariant()
    def passage_tables_agree(self) -> None:
        with self.store.read() as txn:
            for source, passages in self.passages.items():
                assert [(c.no, c.text) for c in chunks.of_source(txn, source)] == passages
            numbers = sorted(no for passages in self.passages.values() for no, _ in passages)
            assert list(chunks.all_numbers(txn)) == numbers
            assert sorted(ref.no for _, ref in SOURCE_CHUNKS.scan(txn)) == numbers
            by_id = {key: ref.no for key, ref in CHUNK_IDS.scan(txn)}
            assert by_id == {c.chunk_id.encode(): c.no for _, c in CHUNKS.scan(txn)}
            assert [from_u64(key) for key, _ in CHUNKS.scan(txn)] == numbers

    @invariant()
    def entities_are_those_mentioned(self) -> None:
        with self.store.read() as txn:
            assert edges_of(txn) == {
                entity_prefix(mention.key) + u64(no)
                for passages in self.passages.values()
                for no, text in passages
                for mention in mentions_of(text)
            }
            named = {
                mention.key
                for passages in self.passages.values()
                for _, text in passages
                for mention in mentions_of(text)
            }
            assert {entity.key for _, entity in ENTITIES.scan(txn)} == named


def mentions_of(text: str) -> tuple[Mention, ...]:
    return (MENTIONS[text],) if text in MENTIONS else ()


def edges_of(txn: ReadTxn) -> set[bytes]:
    return {key for key, _ in txn.scan("entity_chunks")}


class InMemory(StoreAndJobs):
    make_env = staticmethod(lambda _: MemoryEnvironment())


class OnLmdb(StoreAndJobs):
    make_env = staticmethod(LmdbEnvironment)


# As many as other properties have: `make test-properties` has more.
EXAMPLES = settings().max_examples


def run(machine: type[StoreAndJobs], examples: int, steps: int) -> None:
    run_machine(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture(autouse=True)
def ids_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of one millisecond sort as they were asked for, so that a run can be done again."""
    numbers = itertools.count()
    real = queue.job_id
    monkeypatch.setattr(
        queue, "job_id", lambda now_ms, _: real(now_ms, next(numbers).to_bytes(5, "big"))
    )


def test_in_memory() -> None:
    """Whatever is done, the store in memory agrees with the dictionaries and with itself."""
    run(InMemory, examples=EXAMPLES, steps=80)


def test_on_lmdb() -> None:
    """The same on LMDB."""
    run(OnLmdb, examples=-(-EXAMPLES // 8), steps=40)
