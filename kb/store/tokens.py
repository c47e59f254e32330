"""Access tokens in the store: add, list, remove and look up."""

import base64
import hmac
import re
from collections.abc import Callable
from typing import Final

from kb.errors import NotFound, UsageError
from kb.model.ids import sha256_hex
from kb.model.token import Role, Token
from kb.store.kv import ReadTxn
from kb.store.records import TOKENS
from kb.store.store import Store

TOKENS_MAX: Final = 64
_SECRET_BYTES: Final = 32
_PREFIX: Final = "kb_"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_USER_CHARS_MAX: Final = 64


class UnknownToken(NotFound):
    """No token has this name."""

    template = "no token is called {id}; `kb token ls` lists them"


def add(
    store: Store, name: str, user: str, role: Role, random_bytes: Callable[[int], bytes]
) -> str:
    """Store a new token and return its secret, which is not stored.

    `random_bytes` returns so many random bytes. Raises UsageError for a taken or invalid name, for
    an invalid user, and if there are 64 tokens already.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"a token's name has letters, digits, . _ and -, at most 64: {name!r}")
    if not user.strip() or len(user) > _USER_CHARS_MAX or not user.isprintable():
        raise UsageError(f"a user's name is one line of 1 to {_USER_CHARS_MAX} characters")
    secret = _PREFIX + base64.urlsafe_b64encode(random_bytes(_SECRET_BYTES)).decode().rstrip("=")
    with store.write() as txn:
        if TOKENS.get(txn, name.encode()) is not None:
            raise UsageError(f"the token {name} already exists; `kb token rm {name}` removes it")
        if len(list_tokens(txn)) >= TOKENS_MAX:
            raise UsageError(
                f"there are {TOKENS_MAX} tokens, which is the limit; `kb token rm` removes one"
            )
        token = Token(
            name=name,
            user=user,
            role=role,
            sha256=sha256_hex(secret),
            added_ms=store.clock.now_ms(),
        )
        TOKENS.put(txn, name.encode(), token)
    return secret


def remove(store: Store, name: str) -> Token:
    """Remove a token; it is invalid from the next request on. Raises UnknownToken."""
    with store.write() as txn:
        token = TOKENS.get(txn, name.encode()) if _NAME.fullmatch(name) else None
        if token is None:
            raise UnknownToken(id=name)
        TOKENS.delete(txn, name.encode())
    return token


def list_tokens(txn: ReadTxn) -> list[Token]:
    """Every token, by name."""
    return [token for _, token in TOKENS.scan(txn)]


def find_by_secret(tokens: list[Token], secret: str) -> Token | None:
    """The token with this secret, or None; takes the same time for every secret."""
    digest = sha256_hex(secret)
    match = None
    for token in tokens:
        if hmac.compare_digest(token.sha256, digest):
            match = token
    return match
