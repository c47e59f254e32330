"""The scenario of a sync: two folders and a page, edited, moved and deleted since the last one."""

from pathlib import Path
from typing import Any, Final

from crash_processes import text
from crash_rig import CFG, Called, Rig, assert_adds_up
from loopback import LoopbackServer, conditional
from msgspec import Struct

from kb.model import failpoints

IN_SYNC: Final = [name for name in failpoints.NAMES if name.startswith("sync.")]
SYNC: Final = ("sync-all", "--interval-min", "0", "--json")
FOLDERS: Final = ("main", "other")
PAGE: Final = "page.md"

# file -> the word that only this version of it holds
BEFORE: Final = {
    "main/keep.md": "keepone",
    "main/edit.md": "editone",
    "main/old.md": "oldone",
    "main/move.md": "moveone",
    "main/gone.md": "goneone",
    "main/sub/gone.txt": "lostone",
    "main/cross.md": "crossone",
    "other/stay.md": "stayone",
    PAGE: "pageone",
}
AFTER: Final = {
    "main/keep.md": "keepone",
    "main/edit.md": "edittwo",
    "main/new.md": "oldone",
    "main/deep/move.md": "moveone",
    "main/fresh.md": "freshone",
    "main/sub/leaf.txt": "leafone",
    "other/cross.md": "crossone",
    "other/stay.md": "stayone",
    PAGE: "pagetwo",
}
# A doc goes with its file, inside a folder and from one to another.
RENAMED: Final = {
    "main/old.md": "main/new.md",
    "main/move.md": "main/deep/move.md",
    "main/cross.md": "other/cross.md",
}
# Removed by a person; its file stays, and still it is left out.
WITHDRAWN: Final = "main/withdrawn.md"
WITHDRAWN_WORD: Final = "withdrawnone"
WORDS: Final = sorted({*BEFORE.values(), *AFTER.values(), WITHDRAWN_WORD})
FIGURES: Final = {
    "scanned": 10,
    "added": 2,
    "updated": 2,
    "unchanged": 5,
    "resurrected": 0,
    "skipped": 1,
    "failed": 0,
    "moved": 3,
    "removed": 2,
}
LEVEL: Final = dict.fromkeys(FIGURES, 0) | {"scanned": 10, "unchanged": 9, "skipped": 1}


class SyncScenario(Struct, frozen=True):
    """A home that is behind its sources, and what it comes to."""

    behind: Rig
    docs: dict[str, str]
    """Ids by file name, before the sync."""
    passages: dict[str, list[str]]
    """Ids by doc id, before the sync."""
    level: Any
    """What an uninterrupted sync leaves: counts of docs, ledger, passages, vectors, jobs."""


def make(root: Path, site: LoopbackServer) -> SyncScenario:
    rig = Rig(root / "behind", root / "src", (*CFG, 'fetch.allow=["127.0.0.1"]'))
    _publish(site, BEFORE[PAGE], '"1"')
    rig.write({**_files(BEFORE), WITHDRAWN: text(WITHDRAWN_WORD)})
    folders = [rig.sources / name for name in FOLDERS]
    assert rig.call("add", "-r", *folders, site.url(f"/{PAGE}")).code == 0
    docs = {name: row["doc_id"] for name, row in rig.docs().items()}
    assert rig.call("rm", docs.pop(WITHDRAWN), "--yes").code == 0
    _edit(rig)
    _publish(site, AFTER[PAGE], '"2"')
    passages = {doc_id: _passages(rig, doc_id) for doc_id in docs.values()}
    control = rig.copied(root / "control")
    assert figures(control.call(*SYNC)) == FIGURES
    story = SyncScenario(rig, docs, passages, _counts(control))
    assert_level(story, control)
    return story


def figures(synced: Called) -> dict[str, int]:
    """The sums of a sync that succeeded; they add up, and so do its lines."""
    assert synced.code == 0, synced
    for part in (synced.json, *synced.json["sources"]):
        assert_adds_up(part)
    return {name: synced.json[name] for name in FIGURES}


def outcomes(synced: Called) -> dict[str, str]:
    """What became of each source."""
    return {Path(line["location"]).name: line["outcome"] for line in synced.json["sources"]}


def assert_nothing_is_lost(rig: Rig) -> None:
    """Wherever the sync was cut short: all is whole, and what is anywhere is found there, once."""
    rig.check()
    found = rig.found(WORDS)
    assert found.pop(WITHDRAWN_WORD) == []
    for word, hits in found.items():
        places = [name for state in (BEFORE, AFTER) for name, said in state.items() if said == word]
        assert len(hits) == len(set(hits)), (word, hits)
        assert set(hits) <= set(places), (word, hits)
    for name, word in BEFORE.items():
        said = [word] if word in AFTER.values() else [word, AFTER.get(name, word)]
        if word in AFTER.values() or name in AFTER:
            assert len([hit for one in said for hit in found[one]]) == 1, (name, said)


def assert_level(story: SyncScenario, rig: Rig) -> None:
    """After a sync that came to its end nothing is left to do, and all is as it had to be."""
    docs = rig.docs()
    assert set(docs) == set(AFTER)
    found = rig.found(WORDS)
    current = {word: [name] for name, word in AFTER.items()}
    assert found == {word: current.get(word, []) for word in WORDS}
    kept = {name: name for name in BEFORE if AFTER.get(name) == BEFORE[name]}
    for before, after in (RENAMED | kept).items():
        doc_id = docs[after]["doc_id"]
        assert (before, doc_id) == (before, story.docs[before])
        assert _passages(rig, doc_id) == story.passages[doc_id]
    assert _counts(rig) == story.level
    assert figures(rig.call(*SYNC)) == LEVEL
    rig.check()
    rig.compact()
    rig.check()
    assert len(rig.content_files()) == 2 * len(AFTER)
    assert rig.found(WORDS) == found


def assert_goes_on(story: SyncScenario, rig: Rig) -> None:
    """Whatever was interrupted: nothing is lost, and the next sync brings all of it level."""
    assert_nothing_is_lost(rig)
    synced = rig.call(*SYNC)
    done = figures(synced)
    assert outcomes(synced) == dict.fromkeys((*FOLDERS, PAGE), "synced")
    assert (done["scanned"], done["skipped"]) == (FIGURES["scanned"], FIGURES["skipped"])
    assert all(done[name] <= FIGURES[name] for name in FIGURES if name != "unchanged")
    assert_level(story, rig)


def _files(state: dict[str, str]) -> dict[str, str]:
    return {name: text(word) for name, word in state.items() if name != PAGE}


def _publish(site: LoopbackServer, word: str, etag: str) -> None:
    site.routes[f"/{PAGE}"] = conditional(text(word).encode(), etag=etag)


def _edit(rig: Rig) -> None:
    for before, after in RENAMED.items():
        (rig.sources / after).parent.mkdir(exist_ok=True)
        (rig.sources / before).rename(rig.sources / after)
    for name in ("main/gone.md", "main/sub/gone.txt"):
        (rig.sources / name).unlink()
    known = BEFORE.values()
    rig.write({name: said for name, said in _files(AFTER).items() if AFTER[name] not in known})


def _passages(rig: Rig, doc_id: str) -> list[str]:
    shown = rig.call("show", doc_id, "--json")
    assert shown.code == 0, shown
    return [row["chunk_id"] for row in shown.json["passages"]]


def _counts(rig: Rig) -> Any:
    stats = rig.stats()
    return {name: stats[name] for name in ("docs", "ledger", "passages", "vectors", "jobs")}
