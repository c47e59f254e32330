"""Which models' vectors the home holds or is working towards."""

from typing import Final

from kb.model.embedder import EmbedderSet
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import EMBEDDERS

_KEY: Final = b"set"


def in_use(txn: ReadTxn) -> EmbedderSet | None:
    """The home's models; None before anything was worked on."""
    return EMBEDDERS.get(txn, _KEY)


def put(txn: WriteTxn, chosen: EmbedderSet) -> None:
    """Make these the home's models."""
    EMBEDDERS.put(txn, _KEY, chosen)
