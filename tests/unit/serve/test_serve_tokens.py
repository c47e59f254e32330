"""Tokens: added once, recognised by their secret alone, bounded, forgotten."""

import base64

import pytest
from fakes import FakeClock

from kb.errors import UsageError
from kb.model.token import ROLES, role_allows
from kb.store import tokens
from kb.store.memory import MemoryEnvironment
from kb.store.store import Store


@pytest.fixture
def store() -> Store:
    return Store(MemoryEnvironment(), FakeClock())


def drawn(number: int) -> bytes:
    return bytes([number]) * 32


def test_a_secret_has_all_that_was_drawn(store: Store) -> None:
    """256 bits are asked for, and each of them is in the secret; its hash alone is kept."""
    asked: list[int] = []

    def draw(count: int) -> bytes:
        asked.append(count)
        return drawn(7)

    secret = tokens.add(store, "a", "ada", "reader", draw)
    assert asked == [32]
    assert base64.urlsafe_b64decode(secret.removeprefix("kb_") + "=") == drawn(7)
    with store.read() as txn:
        (token,) = tokens.list_tokens(txn)
    assert (token.name, token.user, token.role) == ("a", "ada", "reader")
    assert secret not in repr(token)


def test_each_secret_names_its_token(store: Store) -> None:
    """Only the whole secret does; a hash or a part of one is nobody's."""
    secrets = {
        name: tokens.add(store, name, "ada", "reader", lambda _, n=number: drawn(n))
        for number, name in enumerate(("a", "b", "c"))
    }
    with store.read() as txn:
        known = tokens.list_tokens(txn)
    for name, secret in secrets.items():
        found = tokens.find_by_secret(known, secret)
        assert found is not None
        assert found.name == name
        for other in (secret[:-1], secret + "A", secret.upper(), found.sha256, found.name, ""):
            assert tokens.find_by_secret(known, other) is None
    assert tokens.find_by_secret([], secrets["a"]) is None


@pytest.mark.parametrize("name", ["", ".a", "a b", "a/b", "x" * 65, "ä", "a\n"])
def test_names_are_plain(store: Store, name: str) -> None:
    """A name that cannot be one is refused, to add and to remove."""
    with pytest.raises(UsageError):
        tokens.add(store, name, "ada", "reader", drawn)
    with pytest.raises(tokens.UnknownToken):
        tokens.remove(store, name)


def test_there_are_only_so_many(store: Store) -> None:
    """Over the limit none is added, until one is removed."""
    for number in range(tokens.TOKENS_MAX):
        tokens.add(store, f"t{number}", "ada", "reader", lambda _, n=number: drawn(n))
    with pytest.raises(UsageError, match="64 tokens"):
        tokens.add(store, "more", "ada", "reader", lambda _: drawn(200))
    tokens.remove(store, "t5")
    tokens.add(store, "more", "ada", "reader", lambda _: drawn(200))


def test_roles_are_in_a_row() -> None:
    """Each role may do what those before it may, and no more."""
    assert [[role_allows(one, other) for other in ROLES] for one in ROLES] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
