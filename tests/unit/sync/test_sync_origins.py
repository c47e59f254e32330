"""The register: what was asked for, who is at it, and how a source is named."""

import os
from pathlib import Path

import msgspec
import pytest
from child_processes import finished
from sync_home import SyncHome

from kb.errors import AmbiguousId, NotFound
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.origins import (
    acquire,
    covers,
    list_origins,
    register,
    release,
    resolve_origin,
    unregister,
)
from kb.model.doc import OPERATOR
from kb.model.origin import Origin, origin_id
from kb.store.records import SOURCES

HOUR_MS = 3_600_000


def origin(location: str, kind: str = "folder", **said: object) -> Origin:
    return Origin(
        origin_id=origin_id(kind, location),  # type: ignore[arg-type]
        kind=kind,  # type: ignore[arg-type]
        location=location,
        added_ms=1,
        **said,  # type: ignore[arg-type]
    )


def put(kept: SyncHome, *origins: Origin) -> None:
    with kept.app.store.write() as txn:
        for one in origins:
            SOURCES.put(txn, one.origin_id.encode(), one)


def test_a_folder_is_registered_with_what_was_asked_for(kept: SyncHome, tmp_path: Path) -> None:
    """Filters, tags and visibility are kept, and hold for what a sync finds."""
    folder = tmp_path / "n"
    folder.mkdir()
    kept.add(folder, ext=("org",), ingest_options=IngestOptions(tags=("t",), visibility="shared"))
    known = kept.origin(folder)
    assert (known.kind, known.extensions, known.tags) == ("folder", ("org",), ("t",))
    assert known.synced_ms == kept.clock.now_ms()
    (folder / "a.org").write_text("An org note.")
    (folder / "b.md").write_text("A markdown note.")
    assert (line := kept.line()).added == 1
    assert line.skipped == 1
    (doc,) = kept.docs().values()
    assert (doc.tags, doc.visibility) == (("t",), "shared")


def test_what_was_asked_for_last_holds(kept: SyncHome, tmp_path: Path) -> None:
    """Added again with other options it is one source, with the new ones; unsaid ones stay."""
    folder = tmp_path / "n"
    folder.mkdir()
    (folder / "a.md").write_text("A note.")
    kept.add(folder, ingest_options=IngestOptions(tags=("t",), visibility="shared"))
    kept.add(folder, ext=("md", "org"), ingest_options=IngestOptions(visibility="public"))
    (known,) = kept.origins()
    assert (known.extensions, known.tags, known.visibility) == (("md", "org"), ("t",), "public")
    (doc,) = kept.docs().values()
    assert (doc.tags, doc.visibility) == (("t",), "public")
    assert kept.line().unchanged == 1


def test_adding_again_ends_a_failure(kept: SyncHome) -> None:
    """A source that has just been taken in has no failures to wait for."""
    failed = origin("/n", failures=3, last_error="x", next_try_ms=9, gone_since_ms=5)
    put(kept, failed)
    register(kept.app.store, origin("/n", synced_ms=7))
    (known,) = kept.origins()
    assert (known.failures, known.last_error, known.next_try_ms) == (0, None, 0)
    assert (known.gone_since_ms, known.synced_ms) == (None, 7)


def test_a_source_is_named_by_id_or_place(kept: SyncHome, tmp_path: Path) -> None:
    """Its id, the start of it, its path however typed, its URL in any spelling."""
    folder = os.path.realpath(tmp_path)
    put(kept, origin(folder), origin("http://example.org/a", "url"))
    ident = origin_id("folder", folder)
    with kept.app.store.read() as txn:
        for name in (ident, ident[:6], folder, f"{folder}/x/.."):
            assert resolve_origin(txn, name, OPERATOR).location == folder
        assert resolve_origin(txn, "HTTP://EXAMPLE.org:80/a", OPERATOR).kind == "url"
        for name in ("", "s", "szzzzzz", "http://example.org/b", "http://a\\b"):
            with pytest.raises(NotFound, match="kb sources"):
                resolve_origin(txn, name, OPERATOR)


def test_a_start_of_several_ids_is_refused(kept: SyncHome) -> None:
    """What could mean two sources means neither."""
    put(kept, *(msgspec.structs.replace(origin(f"/{n}"), origin_id=f"sabcd{n}") for n in range(2)))
    with kept.app.store.read() as txn, pytest.raises(AmbiguousId, match="sabcd0, sabcd1"):
        resolve_origin(txn, "sabcd", OPERATOR)


def test_one_holds_a_source_at_a_time(kept: SyncHome) -> None:
    """Held, it is nobody else's; given back, it is only for who has seen it since."""
    put(kept, first := origin("/n"))
    held = acquire(kept.app.store, first)
    assert held is not None
    assert acquire(kept.app.store, held) is None
    release(kept.app.store, held)
    assert acquire(kept.app.store, first) is None
    assert acquire(kept.app.store, kept.origins()[0]) is not None


def test_a_hold_ends_with_its_process(kept: SyncHome) -> None:
    """A dead process holds nothing, however long its lease had to run."""
    child = finished("from kb.store.jobs.holder import holder_name; print(holder_name())")
    dead = child.stdout.strip()
    until_ms = kept.clock.lease_ms() + HOUR_MS
    put(kept, one := origin("/n", holder=dead, held_until_ms=until_ms))
    assert acquire(kept.app.store, one) is not None


@pytest.mark.parametrize(("ahead_ms", "free"), [(0, True), (1, False), (HOUR_MS + 1, True)])
def test_a_hold_of_another_machine_ends_with_its_lease(
    kept: SyncHome, ahead_ms: int, free: bool
) -> None:
    """Where a death cannot be told the lease counts, unless it is from before a restart."""
    until_ms = kept.clock.lease_ms() + ahead_ms
    put(kept, one := origin("/n", holder="elsewhere/1/2", held_until_ms=until_ms))
    assert (acquire(kept.app.store, one) is not None) == free


def test_what_is_asked_for_during_a_sync_stays(kept: SyncHome) -> None:
    """Giving a source back writes what was learned, and not what a person has changed since."""
    put(kept, first := origin("/n", tags=("old",)))
    held = acquire(kept.app.store, first)
    assert held is not None
    register(kept.app.store, origin("/n", tags=("new",)))
    release(kept.app.store, msgspec.structs.replace(held, synced_ms=9, cursor="etag:x"))
    (known,) = kept.origins()
    assert (known.tags, known.synced_ms, known.cursor) == (("new",), 9, "etag:x")
    assert (known.holder, known.held_until_ms) == ("", 0)


def test_taken_off_the_register_during_a_sync_it_stays_off(kept: SyncHome) -> None:
    """Giving back what is not registered any more brings nothing back."""
    put(kept, first := origin("/n"))
    held = acquire(kept.app.store, first)
    assert held is not None
    unregister(kept.app.store, "/n")
    release(kept.app.store, held)
    with kept.app.store.read() as txn:
        assert list_origins(txn) == []
    assert acquire(kept.app.store, first) is None


@pytest.mark.parametrize(
    ("path", "extensions", "covered"),
    [
        ("/n/a.md", ("md",), True),
        ("/n/a.MD", (".md",), True),
        ("/n/a.org", ("*",), True),
        ("/n/a.org", ("md",), False),
        ("/n/.x/a.md", ("*",), False),
        ("/n2/a.md", ("*",), False),
    ],
)
def test_what_a_folder_asks_for(path: str, extensions: tuple[str, ...], covered: bool) -> None:
    """Below it, of its extensions, and not behind a dot."""
    assert covers(origin("/n", extensions=extensions), Path(path)) == covered
