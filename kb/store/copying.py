"""Copies what a transaction sees into an LMDB environment, whatever engine it is of."""

from itertools import islice
from pathlib import Path
from typing import Final

from kb.store.kv import TABLES, ReadTxn
from kb.store.lmdb_env import LmdbEnvironment

_ROWS_COPIED: Final = 1_000


def copy_rows(txn: ReadTxn, folder: Path) -> None:
    """Write all that a transaction sees into the empty `folder`, as an LMDB environment."""
    env = LmdbEnvironment(folder)
    try:
        for table in TABLES:
            rows = txn.scan(table)
            # In steps, because what one transaction changes has to fit into memory.
            while batch := list(islice(rows, _ROWS_COPIED)):
                with env.write() as copy:
                    for key, value in batch:
                        copy.put(table, key, value)
    finally:
        env.close()
