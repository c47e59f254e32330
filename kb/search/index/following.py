"""Registers the caches of a node, so that the log is kept until they have read it."""

import os
from pathlib import Path
from typing import Final

from kb.store import nodes
from kb.store.store import Store

_EVERY_MS: Final = 3_600_000
_STAMP: Final = "registered"


def register(store: Store, folder: Path, log_seq: int, *, is_new: bool) -> None:
    """Say how far the cache in `folder` has come, at most once an hour; for homes of nodes.

    When it last did so is kept beside the cache, so that most searches ask nobody. A cache that
    `is_new` is registered at once, since what is known of the former one counts no more.
    """
    stamp = folder / _STAMP
    now_ms = store.clock.now_ms()
    try:
        last_ms = stamp.stat().st_mtime_ns // 1_000_000
        is_recent = 0 <= now_ms - last_ms < _EVERY_MS
        if is_recent and not is_new and stamp.read_text("ascii") == store.home:
            return
    except (OSError, UnicodeDecodeError):
        pass
    nodes.follow(store, os.fspath(folder), log_seq, is_new=is_new)
    # Whether or not this user may write: who may not asks again in an hour.
    try:
        stamp.write_text(store.home, "ascii")
        os.utime(stamp, ns=(now_ms * 1_000_000, now_ms * 1_000_000))
    except OSError:
        return
