"""The embedding models of a home: the active, the next and the previous one."""

from typing import Final

from kb.model.embedder import EmbedderSet
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import EMBEDDERS

_KEY: Final = b"set"


def in_use(txn: ReadTxn) -> EmbedderSet | None:
    """The home's models; None before the first is chosen."""
    return EMBEDDERS.get(txn, _KEY)


def expect(txn: ReadTxn) -> None:
    """Say that the home's models are read next."""
    txn.expect("embedders", (_KEY,))


def put(txn: WriteTxn, chosen: EmbedderSet) -> None:
    """Set the home's models."""
    EMBEDDERS.put(txn, _KEY, chosen)
