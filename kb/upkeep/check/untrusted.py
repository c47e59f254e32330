"""Inspect an untrusted store in a child process, because a crafted store may crash its reader.

`inspect_store` runs it as `python -m kb.upkeep.check.untrusted STORE`; the child writes a
`StoreInventory` as JSON on standard output.
"""

import contextlib
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import KbError, StoreDamaged
from kb.model.children import module_argv, module_env
from kb.model.decoding import decode_json
from kb.store.survey import survey_store

_WALL_S: Final = 600
_MEMORY_BYTES: Final = 4 << 30
_NAMED_MAX: Final = 1_000
_OUTPUT_BYTES_MAX: Final = 2 << 20
_TEXT_CHARS_MAX: Final = 1_000
_ENV_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")


class UnsafeStore(StoreDamaged):
    """An untrusted store cannot be trusted: reading it could crash the process."""

    template = (
        "{place}: {detail}, so kb cannot trust it; restore a backup of it, or remove it and add "
        "its sources again"
    )


class StoreInventory(Struct, frozen=True, kw_only=True):
    """What a user accepts by trusting a store."""

    docs: int
    findings: int
    """How many damaged records it has; `kb check` names them."""
    sources: tuple[str, ...]
    """Places that `kb sync-all` would read: folders, URLs and pack manifests."""
    models: tuple[str, ...]
    """Embedding models other than the built-in ones."""
    registries: tuple[str, ...]
    """Locations of its registries."""
    tokens: int
    """How many access tokens it has for its server."""


def inspect_store(store: Path) -> StoreInventory:
    """Read every record of a store in a child process, which writes nothing.

    Another child first reads every page without LMDB. Raises UnsafeStore if one of the two
    crashes or cannot read the store.
    """
    survey = survey_store(store)
    if not survey.is_safe:
        raise UnsafeStore(f"it is damaged ({survey.summary[:_TEXT_CHARS_MAX]})", place=store)
    inventory = _inspect_in_child(store)
    now = os.stat(store / "data.mdb")
    if (now.st_dev, now.st_ino) != (survey.device, survey.inode):
        raise UnsafeStore("another file took its place meanwhile", place=store)
    return inventory


def _inspect_in_child(store: Path) -> StoreInventory:
    try:
        child = subprocess.run(
            module_argv("kb.upkeep.check.untrusted", os.fspath(store)),
            check=False,
            env=module_env(_ENV_KEPT),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WALL_S,
        )
    except subprocess.TimeoutExpired:
        raise UnsafeStore("reading it takes too long", place=store) from None
    if child.returncode == 0:
        with contextlib.suppress(msgspec.MsgspecError):
            return decode_json(child.stdout, StoreInventory)
    last_line = child.stderr.decode(errors="replace").strip().rpartition("\n")[2][:_TEXT_CHARS_MAX]
    detail = last_line or "the process that read it died"
    raise UnsafeStore(f"it is not sound ({detail})", place=store)


def _inspect(folder: Path) -> StoreInventory:
    from kb.intake.sync import origins
    from kb.model.embedder import EmbedderChoice
    from kb.store import embedders, records
    from kb.store.kv import TABLES
    from kb.store.store import Store
    from kb.upkeep.check.collector import FindingCollector
    from kb.upkeep.check.records import check_records

    collector = FindingCollector()
    with (
        Store.open(folder, create=False, read_only=True, locked=False) as store,
        store.read() as txn,
    ):
        check_records(txn, collector)
        for table in TABLES:
            for _ in txn.scan(table):
                pass
        models_in_use = embedders.in_use(txn)
        models = (
            [models_in_use.settings, *(row.choice for row in models_in_use.retained)]
            if models_in_use
            else []
        )
        places = [row.location for row in origins.list_origins(txn) if row.kind in _SYNCED_KINDS]
        packs = [row.location for _, row in records.PACKS.scan(txn) if row.location[:1] == "/"]
        registries = [row.location for _, row in records.REGISTRIES.scan(txn)]
        usual = [EmbedderChoice(kind=kind) for kind in ("onnx", "multilingual", "hashing")]
        return StoreInventory(
            docs=txn.count("versions"),
            findings=len(collector.findings) + collector.left_out,
            sources=_bounded([*places, *packs]),
            models=_bounded(
                [f"{row.kind} {row.model}".strip() for row in models if row not in usual]
            ),
            registries=_bounded(registries),
            tokens=txn.count("tokens"),
        )


_SYNCED_KINDS: Final = ("folder", "url", "site", "feed", "repository", "notebook", "entries")


def _bounded(texts: list[str]) -> tuple[str, ...]:
    return tuple(text[:_TEXT_CHARS_MAX] for text in sorted(set(texts))[:_NAMED_MAX])


def _main(folder: Path) -> int:
    for what, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _OUTPUT_BYTES_MAX),
        (resource.RLIMIT_CPU, _WALL_S),
        (resource.RLIMIT_DATA, _MEMORY_BYTES),
    ):
        resource.setrlimit(what, (limit, resource.getrlimit(what)[1]))
    try:
        inventory = _inspect(folder)
    except KbError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(inventory))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1])))
