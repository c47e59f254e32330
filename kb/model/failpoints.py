"""Failpoints: named places where a test can make the program fail. Unarmed they do nothing.

`KB_FAILPOINTS="content.after_link=kill@3;store.before_commit=enospc"` arms them with an action from
ACTIONS, from the given hit on (default 1). `KB_FAILPOINTS_LOG=PATH` logs each name that is hit.
"""

import errno
import os
import signal
import time
from typing import Final

ACTIONS: Final = ("kill", "eio", "enospc", "pause")
_PAUSE_S: Final = 2.0

# Every durable step declares its points here; a test asserts that each of them fires.
NAMES: Final[tuple[str, ...]] = (
    "content.before_write",
    "content.after_write",
    "content.after_fsync",
    "content.after_link",
    "bucket.before_put",
    "bucket.after_put",
    "bucket.before_delete",
    "store.before_commit",
    "store.after_commit",
    "ingest.before_commit",
    "ingest.after_commit",
    "sync.after_hold",
    "sync.after_move",
    "sync.before_remove",
    "sync.before_give_back",
    "packs.after_unpack",
    "packs.after_link",
    "packs.after_register",
    "registry.after_intent",
    "registry.after_files",
    "jobs.after_claim",
    "jobs.after_renew",
    "worker.after_chunk",
    "worker.after_embed",
    "worker.before_finish",
    "worker.after_finish",
    "lexical.before_commit",
    "lexical.after_commit",
    "lexical.after_manifest",
    "lexical.before_switch",
    "dense.after_segment",
    "dense.before_rename",
    "dense.after_rename",
    "compact.after_mark",
    "compact.before_delete",
    "compact.after_delete",
    "compact.after_truncate",
    "backup.after_copy",
    "backup.before_manifest",
    "share.after_publish",
    "notebook.after_objects",
    "notebook.before_ref",
    "notebook.after_ref",
    "notebook.after_file",
    "notebook.before_index",
    "notebook.after_level",
    "notebook.after_intake",
    "push.before_send",
    "push.after_send",
)


def _parse(spec: str) -> dict[str, tuple[str, int]]:
    armed: dict[str, tuple[str, int]] = {}
    for item in filter(None, spec.split(";")):
        name, _, action = item.partition("=")
        action, _, nth = action.partition("@")
        if name not in NAMES or action not in ACTIONS:
            raise ValueError(f"KB_FAILPOINTS: no such failpoint or action: {item!r}")
        armed[name] = (action, int(nth or 1))
    return armed


_armed = _parse(os.environ.get("KB_FAILPOINTS", ""))
_log = os.environ.get("KB_FAILPOINTS_LOG", "")
_hits: dict[str, int] = {}


def failpoint(name: str) -> None:
    """Run the armed action of `name`: kill this process, raise OSError, or sleep."""
    if not _armed and not _log:
        return
    if _log:
        with open(_log, "a", encoding="ascii") as log:
            log.write(name + "\n")
    if name not in _armed:
        return
    _hits[name] = _hits.get(name, 0) + 1
    action, nth = _armed[name]
    if _hits[name] < nth:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "pause":
        time.sleep(_PAUSE_S)
        return
    code = errno.EIO if action == "eio" else errno.ENOSPC
    raise OSError(code, os.strerror(code), name)
