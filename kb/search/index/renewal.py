"""A lexical index without the rows that went: written beside the old one, in nobody's way.

BM25 weighs by statistics of all rows, and tantivy keeps what is gone in them until the last; so an
index that was edited scores otherwise than one that is made of the same passages today. One that
is made anew does not. It is written without the lock that searches take to catch up; that is taken
at the end, for what came meanwhile and for the switch.
"""

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import StoreBusy
from kb.model.failpoints import failpoint
from kb.search.index import follow
from kb.search.index.files import CacheDamaged, fsync_folder
from kb.search.index.follow import Place
from kb.search.index.lexical_engine import Stopped, create_index, engine_errors, write_passages
from kb.search.index.lexical_files import (
    LexicalManifest,
    draft_path,
    drop_drafts,
    drop_other_generations,
    generation_path,
    hashes_of,
    load_manifest,
    read_meta,
)
from kb.search.index.lock import file_lock
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.search.index.lexical import LexicalIndex

# docs/adr/0037: up to here the best ten hardly differ, and a row that goes costs fifty that are
# written, a fifth of what its text costs to embed.
WORN_SHARE: Final = 0.02
# So few passages may wait for the lock: they take some hundredths of a second.
_LEFT_NOS: Final = 500
_ROUNDS_MAX: Final = 8


class _Draft(Struct, frozen=True, kw_only=True):
    """A generation that is whole, and that nothing names yet."""

    path: Path
    place: Place
    removed: int
    hashes: dict[str, str]


def renew(
    index: "LexicalIndex",
    store: Store,
    *,
    wait_s: float,
    worn_share: float,
    goes_on: Callable[[], bool],
) -> str | None:
    """Write an index anew, without what is gone, where that is over `worn_share` of its rows.

    Takes 0.05 ms a passage and, whatever the size, 50 MB of memory. One process does it at a time;
    another leaves it alone. Waits up to `wait_s` for the lock at the end. `goes_on` is asked every
    thousand passages: once it says no, all stays as it is. Returns why not, or None.
    """
    index.refresh()
    manifest = index.manifest
    if manifest is None or not manifest.is_worn(worn_share):
        return None
    generation = secrets.token_hex(8)
    draft = draft_path(index.folder, generation)
    try:
        # Not the lock of the index: whoever searches or adds meanwhile needs that one.
        with file_lock(index.folder, 0.0):
            drop_drafts(index.folder)
            written = _written(index, store, draft, goes_on)
            with file_lock(index.lock_path, wait_s):
                _switch(index, store, manifest, written, generation)
    except (StoreBusy, Stopped):
        # What is there answers as before, and is as worn for the next one who looks.
        return None
    except (OSError, CacheDamaged) as error:
        return f"the lexical cache could not be written anew: {error}"
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return None


def _written(
    index: "LexicalIndex", store: Store, path: Path, goes_on: Callable[[], bool]
) -> _Draft:
    nos, place = follow.everything(index, store)
    path.mkdir(mode=0o700)
    with engine_errors():
        made = create_index(path)
        added = write_passages(made, store, nos, index.audience, replace=False, goes_on=goes_on)
        for _ in range(_ROUNDS_MAX):
            with store.read() as txn:
                nos, following = follow.next_batch(txn, index, place)
            if len(nos) <= _LEFT_NOS:
                break
            added += write_passages(made, store, nos, index.audience, replace=True, goes_on=goes_on)
            place = following
    return _Draft(
        path=path,
        place=place,
        removed=added - read_meta(path).rows,
        hashes=hashes_of(path),
    )


def _switch(
    index: "LexicalIndex", store: Store, before: LexicalManifest, draft: _Draft, generation: str
) -> None:
    """Put the draft in the place of the generation that it was made for, if that is still there."""
    now = load_manifest(index.folder, index.audience)
    if now is None or now[1].generation != before.generation:
        return
    if not follow.can_follow(store, draft.place):
        return
    os.rename(draft.path, generation_path(index.folder, generation))
    fsync_folder(index.folder)
    failpoint("lexical.before_switch")
    try:
        index.record(generation, draft.place, removed=draft.removed, hashes=draft.hashes)
        follow.apply_log(index, store, draft.place)
    finally:
        kept = load_manifest(index.folder, index.audience)
        drop_other_generations(index.folder, kept[1].generation if kept else "")
