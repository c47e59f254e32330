"""Each catalog of entries is searched by itself."""

import pytest
from fakes import FakeClock

from kb.errors import StoreBusy
from kb.knowledge.guide import EntryCatalog, ask
from kb.model.doc import OPERATOR, Scope
from kb.search.engine import Searcher
from kb.store.memory import MemoryEnvironment
from kb.store.store import Store


def busy() -> Store:
    raise StoreBusy(place="secret-place")


def unneeded() -> Searcher:
    raise AssertionError("a store without entries is not searched")


BUSY = EntryCatalog(name="project", store=busy, searcher=unneeded)


@pytest.fixture
def empty() -> EntryCatalog:
    store = Store(MemoryEnvironment(), FakeClock())
    return EntryCatalog(name="user", store=lambda: store, searcher=unneeded)


@pytest.mark.parametrize(("scope", "is_told"), [(OPERATOR, True), (Scope(user="ada"), False)])
def test_a_store_that_fails_is_left_out(empty: EntryCatalog, scope: Scope, is_told: bool) -> None:
    """The others answer, and a warning says so; only an operator hears of places."""
    said = ask([BUSY, empty], "how", scope, {})
    assert not said.found
    (warning,) = said.warnings
    assert warning.startswith("the entries of project are left out")
    assert ("secret-place" in warning) is is_told


def test_where_every_store_fails_so_does_the_question() -> None:
    """With the first one's error."""
    with pytest.raises(StoreBusy, match="secret-place"):
        ask([BUSY, BUSY], "how", OPERATOR, {})


def test_stores_without_entries_are_not_searched(empty: EntryCatalog) -> None:
    """No model is loaded for them, and nothing is found."""
    said = ask([empty, empty], "how", OPERATOR, {})
    assert (said.found, said.chunks, said.warnings) == (False, (), ())
    assert said.message is not None
