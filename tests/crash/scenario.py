"""The story that is interrupted: a folder taken in, edited, a doc removed; then compaction."""

from pathlib import Path
from typing import Final

from crash_rig import Rig
from msgspec import Struct

# file -> the word that only this version of it holds
FIRST: Final = {
    "alder.md": "alderone",
    "birch.md": "birchone",
    "cedar.txt": "cedarone",
    "sub/dogwood.html": "dogwoodone",
    "elder.md": "elderone",
}
REMOVED: Final = "elder.md"
SECOND: Final = {
    "alder.md": "aldertwo",
    "birch.md": "birchone",
    "cedar.txt": "cedartwo",
    "sub/dogwood.html": "dogwoodone",
    "fir.md": "firone",
}
WORDS: Final = sorted({*FIRST.values(), *SECOND.values()})
# Content files of the second state, once nothing else is left.
CONTENT_FILES: Final = 2 * len(SECOND)


class Stories(Struct, frozen=True):
    """Homes at two moments, over the same sources, which hold the second version of all."""

    edited: Rig
    """The first version is in and acknowledged, one doc is removed; the edits are not in."""
    stale: Rig
    """All is in; what the first version left is to be compacted."""


def make(root: Path) -> Stories:
    edited = Rig(root / "edited", root / "src")
    edited.write({name: _text(name, word) for name, word in FIRST.items()})
    assert edited.add()["added"] == len(FIRST)
    removed = edited.docs()[REMOVED]["doc_id"]
    assert edited.call("rm", removed, "--yes").code == 0
    (edited.sources / REMOVED).unlink()
    edited.write({n: _text(n, word) for n, word in SECOND.items() if FIRST.get(n) != word})
    stale = edited.copied(root / "stale")
    stale.add()
    return Stories(edited, stale)


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
    parts = range(6 if name == "alder.md" else 1)
    body = "\n\n".join(
        f"## Part {n}\n\n" + f"An ordinary sentence of part {n} of {title}. " * 12 for n in parts
    )
    return f"# {title}\n\nHere stands {word}.\n\n{body}\n"
