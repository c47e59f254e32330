"""Compaction of a lexical index: a new generation without dead rows replaces the old one.

BM25 uses statistics of all rows, and tantivy counts dead rows in them until it merges. So an edited
index scores differently from a new index of the same chunks. Compaction writes a new index. It
takes the lock, which searches need to catch up, only at the end, to apply the latest changes and to
switch.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import StoreBusy
from kb.model.failpoints import failpoint
from kb.search.index import log_follower
from kb.search.index.files import CacheDamaged
from kb.search.index.lexical_files import (
    LexicalManifest,
    draft_path,
    drop_drafts,
    drop_other_generations,
    file_hashes,
    generation_path,
    load_manifest,
    read_meta,
)
from kb.search.index.lexical_tantivy import (
    IndexingStopped,
    create_index,
    engine_errors,
    write_chunks,
)
from kb.search.index.log_follower import LogPosition
from kb.store.content.durable import fsync_folder
from kb.store.content.lock import file_lock
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.search.index.lexical import LexicalIndex

# At most so many chunks are applied under the lock, in some hundredths of a second.
_REMAINING_CHUNKS_MAX: Final = 500
_ROUNDS_MAX: Final = 8


class _DraftGeneration(Struct, frozen=True, kw_only=True):
    """A complete generation that no manifest names yet."""

    path: Path
    position: LogPosition
    removed: int
    hashes: dict[str, str]


def compact(
    index: "LexicalIndex",
    store: Store,
    *,
    wait_s: float,
    dead_share_max: float,
    should_continue: Callable[[], bool],
) -> str | None:
    """Rewrite an index without dead rows if these are over `dead_share_max` of its rows.

    Takes 0.05 ms a chunk and, at any size, 50 MB of memory. Does nothing while another process
    compacts the index. Waits up to `wait_s` for the lock at the end. Calls `should_continue` every
    thousand chunks, and changes nothing once it returns False. Returns an error, or None.
    """
    index.refresh()
    manifest = index.manifest
    if manifest is None or not manifest.is_stale(dead_share_max):
        return None
    import secrets

    generation = secrets.token_hex(8)
    draft_folder = draft_path(index.folder, generation)
    try:
        # Not the lock of the index, which searches and ingests need meanwhile.
        with file_lock(index.folder, 0.0):
            drop_drafts(index.folder)
            draft_generation = _write_draft(index, store, draft_folder, should_continue)
            with file_lock(index.lock_path, wait_s):
                _publish(index, store, manifest, draft_generation, generation)
    except (StoreBusy, IndexingStopped):
        # The old generation stays in use, and the next run tries again.
        return None
    except (OSError, CacheDamaged) as error:
        return f"the lexical cache could not be rewritten: {error}"
    finally:
        shutil.rmtree(draft_folder, ignore_errors=True)
    return None


def _write_draft(
    index: "LexicalIndex", store: Store, path: Path, should_continue: Callable[[], bool]
) -> _DraftGeneration:
    nos, position = log_follower.all_chunks(index, store)
    path.mkdir(mode=0o700)
    with engine_errors():
        index_draft = create_index(path)
        added = write_chunks(
            index_draft, store, nos, index.audience, replace=False, should_continue=should_continue
        )
        for _ in range(_ROUNDS_MAX):
            with store.read() as txn:
                nos, next_position = log_follower.next_batch(txn, index, position)
            if len(nos) <= _REMAINING_CHUNKS_MAX:
                break
            added += write_chunks(
                index_draft,
                store,
                nos,
                index.audience,
                replace=True,
                should_continue=should_continue,
            )
            position = next_position
    return _DraftGeneration(
        path=path,
        position=position,
        removed=added - read_meta(path).rows,
        hashes=file_hashes(path),
    )


def _publish(
    index: "LexicalIndex",
    store: Store,
    before: LexicalManifest,
    draft: _DraftGeneration,
    generation: str,
) -> None:
    """Replace the generation that the draft was made of, if that is still the current one."""
    current = load_manifest(index.folder, index.audience)
    if current is None or current[1].generation != before.generation:
        return
    with store.read() as txn:
        if not log_follower.can_follow(txn, draft.position):
            return
    os.rename(draft.path, generation_path(index.folder, generation))
    fsync_folder(index.folder)
    failpoint("lexical.before_switch")
    try:
        index.record(generation, draft.position, removed=draft.removed, hashes=draft.hashes)
        log_follower.apply_log(index, store, draft.position)
    finally:
        current = load_manifest(index.folder, index.audience)
        drop_other_generations(index.folder, current[1].generation if current else "")
