"""Events without a socket: signs of life, the pace of looks, and ends that no client can hasten."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_http_inside import served_of

from kb.home.app import App
from kb.model.config import EmbedSettings, Settings
from kb.model.doc import OPERATOR
from kb.serve.http_changes import Changes
from kb.serve.http_events import Watching
from kb.serve.http_routes import Caller
from kb.store.meta import set_word


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with App.open(tmp_path / "home", Settings(embed=EmbedSettings(kind="hashing"))) as opened:
        yield opened


def told(app: App, caller: Caller, *, limit_s: float, beat_s: float) -> list[bytes]:
    """What a stream of the queue says in its time."""

    async def all_of_it() -> list[bytes]:
        served = served_of(app)
        watching = Watching(served, caller, (), ())
        try:
            return [piece async for piece in watching.pieces(limit_s, beat_s)]
        finally:
            assert served.changes.close(5)

    return asyncio.run(all_of_it())


def test_it_gives_signs_of_life(app: App) -> None:
    """While nothing changes a comment comes every so often, and no event twice."""
    caller = Caller(scope=OPERATOR, role="admin")
    first, *others = told(app, caller, limit_s=0.5, beat_s=0.1)
    assert first.startswith(b"event: queue\ndata: {")
    assert set(others) == {b": at work\n\n"}
    assert 2 <= len(others) <= 5


def test_it_ends_for_whoever_is_not_let_in_any_more(app: App) -> None:
    """Nothing is said to one whose token is gone."""
    caller = Caller(scope=OPERATOR, role="admin", holds=lambda: False)
    assert told(app, caller, limit_s=60, beat_s=60) == []


def test_changes_are_told_at_a_pace(app: App) -> None:
    """All who wait hear of a commit, some time after it; without one they wait their time."""

    async def waited() -> None:
        changes = Changes(app.store)
        known = await changes.last()
        assert not await changes.after(known, 0.01)
        with app.store.write() as txn:
            set_word(txn, "x", "y")
        assert await changes.last() > known
        began_s = time.monotonic()
        assert await asyncio.gather(*(changes.after(known, 30) for _ in range(50))) == [True] * 50
        assert 0.1 < time.monotonic() - began_s < 60
        assert changes.close(5)

    asyncio.run(waited())
