"""Tokens of transactions: a writer gets one, and a reader asks for a state that is no earlier.

A token is the number of a commit, unreadable to who holds it: from numbers a user could count the
writes of others. Each is new, also of the same commit.
"""

import base64
import hashlib
import os
import threading
from typing import Final, Protocol

from kb.errors import KbError, UsageError
from kb.store.kv import ReadTxn
from kb.store.meta import get_word, set_word
from kb.store.store import Store

TOKEN_CHARS: Final = 32
_KEY: Final = "transaction key"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 8
_NUMBER_BYTES: Final = 8
_SEAL_BYTES: Final = 8


class Draw(Protocol):
    """Random bytes."""

    def __call__(self, count: int, /) -> bytes:
        """So many of them."""
        ...


class Transactions:
    """Makes and reads the tokens of one store; all that have it open share a key in it."""

    def __init__(self, store: Store, draw: Draw = os.urandom) -> None:
        self._store = store
        self._draw = draw
        self._lock = threading.Lock()
        self._key = b""
        self._is_denied = False

    def token(self) -> str | None:
        """A token of all that this process has seen or written; None of a store without a key.

        The first one makes the key, where the store can be written.
        """
        key = self._known_key(is_made=True)
        if not key:
            return None
        nonce = self._draw(_NONCE_BYTES)
        number = self._store.seen_txn().to_bytes(_NUMBER_BYTES)
        hidden = _xor(number, _pad(key, nonce))
        sealed = nonce + hidden + _seal(key, nonce + hidden)
        return base64.urlsafe_b64encode(sealed).decode()

    def number(self, token: str) -> int:
        """The number of a token's commit. Raises UsageError for what is no token of this store."""
        key = self._known_key(is_made=False)
        try:
            sealed = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        except ValueError:
            sealed = b""
        nonce, hidden = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:-_SEAL_BYTES]
        is_whole = len(hidden) == _NUMBER_BYTES and bool(key)
        if not is_whole or sealed[-_SEAL_BYTES:] != _seal(key, nonce + hidden):
            raise UsageError("at_least takes the `transaction` that a write to this home answered")
        return int.from_bytes(_xor(hidden, _pad(key, nonce)))

    def _known_key(self, *, is_made: bool) -> bytes:
        with self._lock:
            if not self._key:
                with self._store.read() as txn:
                    self._key = _read_key(txn)
            if not self._key and is_made and not self._is_denied:
                self._key = self._made_key()
            return self._key

    def _made_key(self) -> bytes:
        try:
            with self._store.write() as txn:
                key = _read_key(txn) or self._draw(_KEY_BYTES)
                set_word(txn, _KEY, key.hex())
        except KbError:
            # Whoever may only read does without, and does not try again at each answer.
            self._is_denied = True
            return b""
        return key


def _read_key(txn: ReadTxn) -> bytes:
    return bytes.fromhex(get_word(txn, _KEY))


def _pad(key: bytes, nonce: bytes) -> bytes:
    return hashlib.blake2b(nonce, key=key, digest_size=_NUMBER_BYTES, person=b"number").digest()


def _seal(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, key=key, digest_size=_SEAL_BYTES, person=b"seal").digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
