"""A token says which state is meant, to kb alone."""

from typing import Never

import pytest

from kb.errors import ReadOnlyHome, StoreBehind, UsageError
from kb.model.clock import SystemClock
from kb.store.memory import MemoryEnvironment
from kb.store.meta import set_word
from kb.store.store import Store
from kb.store.transactions import TOKEN_CHARS, Transactions


@pytest.fixture
def store() -> Store:
    return Store(MemoryEnvironment(), SystemClock())


def token_of(store: Store) -> str:
    token = Transactions(store).token()
    assert token is not None
    return token


def test_a_token_is_of_the_newest_commit(store: Store) -> None:
    """Each is new, and all are read by whoever has the store open."""
    first = token_of(store)
    assert Transactions(store).number(first) == store.last_txn()
    again = token_of(store)
    assert (len(again), again == first) == (TOKEN_CHARS, False)
    with store.write() as txn:
        set_word(txn, "x", "y")
    later = token_of(store)
    numbers = [Transactions(store).number(token) for token in (first, again, later)]
    assert numbers == [store.last_txn() - 1, store.last_txn() - 1, store.last_txn()]


def test_what_is_no_token_of_the_home_is_refused(store: Store) -> None:
    """Nothing that is cut, changed, made up or of another home counts as a number."""
    token = token_of(store)
    other = token_of(Store(MemoryEnvironment(), SystemClock()))
    changed = ("B" if token[0] == "A" else "A") + token[1:]
    for wrong in ("", token[:-4], token + "AAAA", changed, other, "\N{SNOWMAN}", "A" * TOKEN_CHARS):
        with pytest.raises(UsageError, match="at_least takes"):
            Transactions(store).number(wrong)


def test_who_may_only_read_makes_no_key() -> None:
    """There is no token then, and reading one says so."""

    class ReadOnlyEnvironment(MemoryEnvironment):
        def write(self) -> Never:
            raise ReadOnlyHome("", place="here")

    store = Store(ReadOnlyEnvironment(), SystemClock())
    assert Transactions(store).token() is None
    with pytest.raises(UsageError):
        Transactions(store).number("A" * TOKEN_CHARS)


def test_what_does_not_come_is_waited_for_a_while(store: Store) -> None:
    """Then the error says what to do."""
    store.reach(store.last_txn(), 0.0)
    with pytest.raises(StoreBehind, match="try again"):
        store.reach(store.last_txn() + 1, 0.05)
