"""A few pairs in an environment, for tests of what happens to it."""

from kb.store.kv import Environment


def put(env: Environment, key: bytes, value: bytes = b"v") -> None:
    """Commit one pair."""
    with env.write() as txn:
        txn.put("docs", key, value)


def keys_of(env: Environment) -> list[bytes]:
    """All keys, in their order."""
    with env.read() as txn:
        return [key for key, _ in txn.scan("docs")]
