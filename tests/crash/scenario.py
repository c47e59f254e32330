"""The scenario that crash tests interrupt: add, edit and remove docs, then compact."""

import os
from pathlib import Path
from typing import Final

from crash_rig import Rig
from msgspec import Struct

from kb.model import failpoints

# Points that only other commands reach; each of these rooms has a campaign of its own.
ELSEWHERE: Final = (
    *("sync.", "backup.", "packs.", "notebook.", "push.", "registry.", "share."),
    "bucket.",
)
POINTS: Final = [name for name in failpoints.NAMES if not name.startswith(ELSEWHERE)]
# file -> the word that only this version of it holds
FIRST: Final = {
    "alder.md": "alderone",
    "birch.md": "birchone",
    "cedar.txt": "cedarone",
    "sub/dogwood.html": "dogwoodone",
    "elder.md": "elderone",
}
REMOVED: Final = "elder.md"
# Comes and goes between two compactions.
BRIEF: Final = "gorse.md"
SECOND: Final = {
    "alder.md": "aldertwo",
    "birch.md": "birchone",
    "cedar.txt": "cedartwo",
    "sub/dogwood.html": "dogwoodone",
    "fir.md": "firone",
}
# The brief one is long, so that the caches are worn once it has gone.
PARTS: Final = {"alder.md": 6, BRIEF: 12}
WORDS: Final = sorted({*FIRST.values(), *SECOND.values()})
# Content files of the second state, once nothing else is left.
CONTENT_FILES: Final = 2 * len(SECOND)


class Scenarios(Struct, frozen=True):
    """Homes at two moments, over the same sources, which hold the second version of all."""

    edited: Rig
    """The first version is in and acknowledged, one doc is removed; the edits are not in."""
    worn: Rig
    """All is in, and every step of a compaction has something to do.

    Files that an earlier run marked, versions that were replaced, a doc that was removed since, a
    file that a dead writer left, vectors without a passage, a log that both caches can read.
    """


def make(root: Path) -> Scenarios:
    edited = Rig(root / "edited", root / "src")
    edited.write({name: _text(name, word) for name, word in FIRST.items()})
    assert edited.add()["added"] == len(FIRST)
    removed = edited.docs()[REMOVED]["doc_id"]
    assert edited.call("rm", removed, "--yes").code == 0
    (edited.sources / REMOVED).unlink()
    edited.write({n: _text(n, word) for n, word in SECOND.items() if FIRST.get(n) != word})
    return Scenarios(edited, _worn(edited.copied(root / "worn")))


def _worn(rig: Rig) -> Rig:
    assert rig.call("compact", "--grace-min", 0).code == 0
    rig.write({BRIEF: _text(BRIEF, "briefone")})
    rig.add()
    assert rig.call("rm", rig.docs()[BRIEF]["doc_id"], "--yes").code == 0
    (rig.sources / BRIEF).unlink()
    left = rig.home / "tmp" / "left"
    left.write_bytes(b"half a file")
    os.utime(left, (0, 0))
    pack = rig.home / "packs" / "left@0123456789abcdef"
    pack.mkdir(parents=True)
    (pack / "manifest.json").write_bytes(b"{}")
    return rig


def assert_acknowledged_is_whole(rig: Rig) -> None:
    """Whatever was interrupted: all is whole, and every doc is its old or its new version."""
    rig.check()
    docs = rig.docs()
    assert set(FIRST) - {REMOVED} <= set(docs) <= set(SECOND)
    rig.drain()
    rig.check()
    found = rig.found(WORDS)
    for name, row in docs.items():
        words = [FIRST[name]] if name in FIRST else []
        words += [SECOND[name]] if SECOND[name] not in words else []
        expected = words[row["version"] - 1]
        hits = {word: found[word] for word in words}
        assert hits == {word: [name] if word == expected else [] for word in words}
    assert found[FIRST[REMOVED]] == []


def assert_second_is_all(rig: Rig) -> None:
    """Run again to its end, it comes to what it would have come to without the interruption."""
    rig.add()
    found = rig.found(WORDS)
    current = {word: [name] for name, word in SECOND.items()}
    assert found == {word: current.get(word, []) for word in WORDS}
    assert {name: row["version"] for name, row in rig.docs().items()} == {
        name: 2 if name in FIRST and FIRST[name] != word else 1 for name, word in SECOND.items()
    }
    rig.compact()
    rig.check()
    assert len(rig.content_files()) == CONTENT_FILES
    assert rig.found(WORDS) == found


def _text(name: str, word: str) -> str:
    title = Path(name).stem.capitalize()
    if name.endswith(".html"):
        said = f"In this article {word} is what there is to find, among ordinary words. " * 4
        return f"<html><head><title>{title}</title></head><body><p>{said}</p></body></html>"
    parts = range(PARTS.get(name, 1))
    body = "\n\n".join(
        f"## Part {n}\n\n" + f"An ordinary sentence of part {n} of {title}. " * 12 for n in parts
    )
    return f"# {title}\n\nHere stands {word}.\n\n{body}\n"
