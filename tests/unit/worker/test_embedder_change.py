"""A second model: its vectors are made aside, used all at once, and can be given up again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_worker import Counting, WorkHome, paragraphs, spec_of

from kb.errors import UsageError
from kb.intake.worker.embedders import begin_change, roll_back, switch_if_complete
from kb.intake.worker.stages import follow_stages
from kb.model.embedder import EmbedderChoice, EmbedderSet
from kb.store import embedders, log
from kb.store.jobs import queue

ASKED = EmbedderChoice(kind="hashing")


class ChangingHome(WorkHome):
    """A home with a model in use, and another one at hand."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.old, self.other = self.embedder, Counting(dim=32, name="other")
        follow_stages(self.store, chunker="1", models=self.models())

    def begin(self) -> EmbedderSet:
        self.next = self.other
        return begin_change(self.store, spec_of(self.other), ASKED)

    def known(self) -> EmbedderSet:
        with self.store.read() as txn:
            known = embedders.in_use(txn)
        assert known is not None
        return known

    def drain(self) -> None:
        pool = self.pool()
        pool.start()
        pool.drain()
        assert pool.shutdown()

    def jobs(self, kind: str) -> int:
        with self.store.read() as txn:
            return queue.count_of_kind(txn, kind)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ChangingHome]:
    home = ChangingHome(tmp_path / "home")
    yield home
    home.close()


def test_the_switch_comes_when_the_last_vector_is_there(home: ChangingHome) -> None:
    """Until then the old model is the active one, and no cache hears of the new vectors."""
    for n in range(3):
        home.add(f"{n}.md", paragraphs(2))
    with home.store.read() as txn:
        before = log.last_seq(txn)
    home.begin()
    assert home.jobs("reembed") == 3
    assert not switch_if_complete(home.store)
    assert home.known().active == spec_of(home.old)
    home.drain()
    known = home.known()
    assert (known.active, known.next) == (spec_of(home.other), None)
    assert known.previous == spec_of(home.old)
    assert home.missing(home.other.fingerprint) == 0
    assert home.missing(home.old.fingerprint) == 0
    with home.store.read() as txn:
        assert log.last_seq(txn) == before


def test_what_comes_in_meanwhile_is_embedded_by_both(home: ChangingHome) -> None:
    """A doc added during the change has the old model's vectors at once and the new one's too."""
    home.add("a.md", paragraphs(2))
    home.begin()
    home.add("b.md", paragraphs(3))
    assert home.missing(home.old.fingerprint) == 0
    assert home.jobs("reembed") == 2
    home.drain()
    assert home.known().active == spec_of(home.other)
    assert home.missing(home.other.fingerprint) == 0


def test_begun_again_it_goes_on_where_it_was(home: ChangingHome) -> None:
    """What is embedded stays, whether the worker died or the change was asked for twice."""
    for n in range(4):
        home.add(f"{n}.md", f"only words {n}")
    home.begin()
    claims = home.claims("reembed")
    home.begin()
    with home.store.write() as txn:
        for claim in claims:
            queue.release(txn, claim)
    home.drain()
    assert sorted(home.other.texts) == sorted(set(home.other.texts))
    assert len(home.other.texts) == 4


def test_a_change_given_up_leaves_the_old_model(home: ChangingHome) -> None:
    """Rolled back before the switch, its jobs end without work."""
    home.add("a.md", paragraphs(2))
    home.begin()
    assert roll_back(home.store).next is None
    home.next = None
    home.drain()
    assert home.known().active == spec_of(home.old)
    assert (home.other.texts, home.jobs("reembed")) == ([], 0)


def test_rolled_back_after_the_switch(home: ChangingHome) -> None:
    """The old vectors are searched again at once; what was added since is embedded for them."""
    home.add("a.md", paragraphs(2))
    home.begin()
    home.drain()
    home.embedder, home.next = home.other, None
    home.add("b.md", paragraphs(3))
    assert home.missing(home.old.fingerprint) > 0
    known = roll_back(home.store)
    assert (known.active, known.previous) == (spec_of(home.old), spec_of(home.other))
    assert home.jobs("embed") == 1
    home.embedder = home.old
    home.drain()
    assert home.missing(home.old.fingerprint) == 0


def test_nothing_to_roll_back_to(home: ChangingHome) -> None:
    """Without an earlier model it is refused, and nothing changes."""
    with pytest.raises(UsageError, match="no model to go back to"):
        roll_back(home.store)
    assert home.known() == home.models()


def test_a_failed_doc_holds_the_switch_back(home: ChangingHome) -> None:
    """A set that lacks a vector is not used, however long it is tried."""
    home.add("a.md", paragraphs(2))
    home.begin()
    home.other.bad = "error"
    for _ in range(5):
        home.drain()
        home.clock.advance(700_000)
    assert home.known().active == spec_of(home.old)
    with home.store.read() as txn:
        assert [job.last_error for job in queue.failed(txn)] == ["the model is out of sorts"]
    home.other.bad = ""
    with home.store.write() as txn:
        queue.retry_failed(txn)
    home.drain()
    assert home.known().active == spec_of(home.other)


def test_a_lost_job_is_found_before_the_switch(home: ChangingHome) -> None:
    """A doc without vectors and without a job is noticed when the set is looked over."""
    home.add("a.md", paragraphs(2))
    home.begin()
    for claim in home.claims("reembed"):
        with home.store.write() as txn:
            queue.finish(txn, claim)
    assert not switch_if_complete(home.store)
    assert home.jobs("reembed") == 1
    home.drain()
    assert home.known().active == spec_of(home.other)


def test_an_empty_home_switches_at_once(home: ChangingHome) -> None:
    """There is nothing to embed, and so nothing to wait for."""
    home.begin()
    assert switch_if_complete(home.store)
    assert home.known().active == spec_of(home.other)


def test_asked_for_the_model_in_use_the_change_ends(home: ChangingHome) -> None:
    """To name the active model is to stay with it."""
    home.add("a.md", paragraphs(2))
    home.begin()
    assert begin_change(home.store, spec_of(home.old), ASKED).next is None


def test_compaction_frees_a_model_after_its_days(home: ChangingHome) -> None:
    """The vectors before stay for a week, and can then no longer be rolled back to."""
    home.add("a.md", paragraphs(2))
    home.begin()
    home.drain()
    home.embedder, home.next = home.other, None
    vectors = home.count("vectors")
    for _ in range(2):
        assert home.compact().vectors_removed == 0
    home.wait_min(8 * 24 * 60)
    assert home.compact(dry_run=True).vectors_removed == vectors // 2
    assert home.compact().vectors_removed == vectors // 2
    assert home.missing(home.other.fingerprint) == 0
    with pytest.raises(UsageError):
        roll_back(home.store)
