"""A pool that outlives a full disk: it tries again, says why meanwhile, and then does the work."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import SmallHome
from http_server import until

from kb.errors import KbError, StoreFull
from kb.intake.worker import pool as pool_module
from kb.intake.worker.pool import PoolModels, WorkerPool
from kb.intake.worker.settings import WorkerSettings
from kb.model.job import Claim
from kb.store.jobs import queue


class Failing:
    """A home whose chunk jobs meet trouble for as long as there is some."""

    def __init__(self, root: Path) -> None:
        self.home = SmallHome(root)
        self.trouble: KbError | OSError | None = None
        self.tries = 0
        settings = WorkerSettings(threads=2, idle_ms=10)
        models = PoolModels(active=lambda: self.home.embedder)
        plain = WorkerPool(self.home.store, self.home.content, models, settings)
        work: Callable[[list[Claim]], None] = vars(type(plain))["_handler_of"](plain, "chunk")

        def chunk(claims: list[Claim]) -> None:
            self.tries += 1
            if self.trouble is not None:
                raise self.trouble
            work(claims)

        handlers = {"chunk": chunk}
        self.pool = WorkerPool(self.home.store, self.home.content, models, settings, handlers)

    def counts(self) -> queue.JobCounts:
        with self.home.store.read() as txn:
            return queue.counts(txn)


@pytest.mark.parametrize(
    "trouble", [StoreFull("no space", place="x"), OSError(28, "no space", "x")], ids=["store", "os"]
)
def test_it_goes_on_when_there_is_space_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: KbError | OSError,
) -> None:
    """However long it took, no attempt is spent; the log has one line of it, and one of its end."""
    monkeypatch.setattr(pool_module, "_PAUSE_FIRST_S", 0.01)
    monkeypatch.setattr(pool_module, "_PAUSE_MAX_S", 0.05)
    failing = Failing(tmp_path)
    failing.home.put("note.md", "# Quince\n\nA quince.")
    failing.trouble = trouble
    with caplog.at_level(logging.WARNING, logger="kb"):
        failing.pool.start(recovers=True)
        until(lambda: failing.tries > 8)
        assert failing.pool.trouble is trouble
        failing.trouble = None
        until(
            lambda: (
                failing.pool.trouble is None
                and not any((failing.counts().ready, failing.counts().running))
            )
        )
        assert failing.pool.shutdown()
    assert failing.counts().failed == 0
    said = [record.getMessage() for record in caplog.records]
    (begins, ends) = said
    assert type(trouble).__name__ in begins
    assert ends == "the workers work again"
    assert failing.home.check().sound
    failing.home.close()


def test_without_recovery_it_ends(tmp_path: Path) -> None:
    """As a command wants it that waits for the work: `drain` raises what was wrong."""
    failing = Failing(tmp_path)
    failing.home.put("note.md", "# Quince\n\nA quince.")
    failing.trouble = StoreFull("no space", place="x")
    failing.pool.start()
    with pytest.raises(StoreFull):
        failing.pool.drain()
    assert failing.pool.shutdown()
    failing.home.close()
