"""A manifest from markdown: what is taken from where, and the same bytes each time."""

import json
import os
from pathlib import Path

import pytest

from kb.errors import EmptySource, TooLarge, UsageError
from kb.intake.chunker.links import FileNames, Link, links
from kb.knowledge.packs import build as building
from kb.knowledge.packs.build import Built, build, write_manifest
from kb.knowledge.packs.check import check
from kb.knowledge.packs.load import load_pack
from kb.knowledge.packs.manifest import PackDoc, PackEdge


def built_of(folder: Path, files: dict[str, str], pack_id: str = "p") -> Built:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return build(folder, [folder / name for name in files], pack_id)


def edges(found: PackDoc) -> list[tuple[str, str]]:
    return [(edge.type, edge.target) for edge in found.related]


def test_front_matter_wins(tmp_path: Path) -> None:
    """Title, summary, kind, tags, date and links as the file says them itself."""
    front = """---
title: One thing
summary: What it is.
kind: Domain Model
tags: [a, b]
date: 2024-05-06
related:
  - {type: part_of, target: two, description: why}
  - edge_type: extends
    target: sub/three.md
  - two
---
# Another title

Another paragraph.
"""
    built = built_of(
        tmp_path, {"one.md": front, "docs/two.md": "# Two", "sub/three.md": "three of them"}
    )
    three, two, one = sorted(built.manifest.docs, key=lambda found: -len(found.source_path))
    assert (one.id, one.selector, one.source_path) == ("p.one", "one", "one.md")
    assert (one.title, one.summary, one.kind) == ("One thing", "What it is.", "domain_model")
    assert (one.tags, one.updated_at) == (("a", "b"), "2024-05-06")
    assert one.related[0] == PackEdge(type="part_of", target="two", description="why")
    assert edges(one)[1:] == [("extends", "sub.three"), ("related_to", "two")]
    assert (two.selector, two.title, two.summary, two.kind) == ("two", "Two", "", "reference")
    assert (three.title, three.summary) == ("three", "three of them")
    assert built.warnings == ()


def test_toml_front_matter(tmp_path: Path) -> None:
    """Its tables and lists are read like YAML's."""
    front = (
        '+++\ntitle = "T"\nkind = "how-to"\nrelated = [{type = "governs", target = "b"}]\n+++\nx'
    )
    built = built_of(tmp_path, {"a.md": front, "b.md": "# B"})
    assert built.manifest.docs[0].kind == "how_to"
    assert edges(built.manifest.docs[0]) == [("governs", "b")]


def test_a_summary_is_the_first_paragraph(tmp_path: Path) -> None:
    """Not a heading, a list or code; without marks, and not too long."""
    text = "# T\n\n- item\n\n```\ncode\n```\n\nThe **first** [one](x.html)\nof two. " + "w " * 400
    summary = built_of(tmp_path, {"a.md": text}).manifest.docs[0].summary
    assert summary.startswith("The first one of two. w w")
    assert len(summary) <= 300


def test_links_between_the_files_become_references(tmp_path: Path) -> None:
    """By path or wiki name, each once; what leads elsewhere is none, what is lost is told."""
    text = """# A
[b](b.md), [b again](./b.md#part "title"), ![c](<sub/c d.md>), [up](/sub/c%20d.md), [a](a.md),
[web](https://b.example/b.md), [mail](mailto:b@b.md), [image](b.png), [lost](lost.md) [[B]] [[#x]]
[[sub/c d|shown]] [[E title#part]] [[nobody]] `[d](d.md)` [d]: d.md

- item

  ```
  [d](d.md)
  ```

## Code

    [[d]]
"""
    others = {"b.md": "x", "sub/c d.md": "x", "d.md": "x", "sub/e.md": "# E title"}
    built = built_of(tmp_path, {"a.md": text, **others})
    found = next(found for found in built.manifest.docs if found.selector == "a")
    assert edges(found) == [("references", name) for name in ("b", "sub.c d", "sub.e")]
    assert built.warnings == (
        "a.md: it links to lost.md, which does not exist",
        "a.md: it links to nobody, which does not exist",
    )


def test_what_a_wiki_name_means() -> None:
    """A path, else a stem or title; of several the one in the same folder, or none."""
    names = FileNames({"x/a.md": "Tea", "y/a.md": "Tea", "y/b.md": "b", "c.md": "C"})
    assert names.resolve("x/z.md", Link("wiki", "A")) == "x/a.md"
    assert names.resolve("y/b.md", Link("wiki", "tea")) == "y/a.md"
    assert names.resolve("c.md", Link("wiki", "a")) is None
    assert names.resolve("c.md", Link("wiki", "y/a")) == "y/a.md"
    assert names.resolve("x/a.md", Link("wiki", "y/a.md")) == "y/a.md"
    assert names.resolve("x/a.md", Link("path", "../c")) == "c.md"
    assert names.resolve("x/a.md", Link("path", "b")) is None
    assert names.resolve("x/a.md", Link("path", "../../c.md")) is None


@pytest.mark.parametrize("text", ["[" * 50_000, "](" * 50_000, "[[" * 50_000, "`" * 50_000])
def test_links_of_hostile_text(text: str) -> None:
    """Nothing is found in them, soon."""
    assert links(text) == []


def test_selectors_are_never_the_same(tmp_path: Path) -> None:
    """What lies outside docs/ keeps the short one."""
    files = dict.fromkeys(("docs/x.md", "x.md", "a/b.md", "a.b.md", "docs/a.b.md"), "x")
    docs = built_of(tmp_path, files).manifest.docs
    assert {found.source_path: found.selector for found in docs} == {
        "x.md": "x",
        "docs/x.md": "docs.x",
        "a.b.md": "a.b",
        "a/b.md": "a.b-2",
        "docs/a.b.md": "docs.a.b",
    }


def test_what_cannot_be_taken_in_is_told(tmp_path: Path) -> None:
    """An empty file is left out; one that is not there, or whose name is no text, has failed."""
    (tmp_path / "a.md").write_text("---\nrelated: [{type: likes, target: a}, [x], lost]\n---\nx")
    (tmp_path / "empty.md").write_text("\n")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))
    odd.write_text("x")
    files = [tmp_path / "a.md", tmp_path / "empty.md", odd, tmp_path / "gone.md"]
    built = build(tmp_path, files, "p")
    assert [found.selector for found in built.manifest.docs] == ["a"]
    assert built.failed == 2
    assert [line.partition(":")[0] for line in sorted(built.warnings)] == [
        "a.md",
        "a.md",
        "a.md",
        "empty.md",
        "file",
        "gone.md",
    ]
    assert edges(built.manifest.docs[0]) == [("related_to", "lost")]


def test_nothing_and_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack has a doc, an id that fits, and not too many docs."""
    with pytest.raises(EmptySource):
        build(tmp_path, [], "p")
    with pytest.raises(UsageError):
        built_of(tmp_path, {"a.md": "x"}, "p" * 201)
    monkeypatch.setattr(building, "DOCS_MAX", 1)
    with pytest.raises(TooLarge):
        built_of(tmp_path, {"a.md": "x", "b.md": "x"})


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    """Wherever they lie and in whatever order they are named; the hash follows the bodies."""
    files = {"a.md": "[b](b.md)", "b.md": "---\ntags: [x]\n---\n[[a]]"}
    one = built_of(tmp_path / "one", files)
    two = built_of(tmp_path / "two", dict(reversed(files.items())))
    assert one.data == two.data
    other = built_of(tmp_path / "two", {**files, "a.md": "[b](b.md)!"})
    assert other.manifest.content_hash != one.manifest.content_hash


def test_a_built_pack_loads_as_it_was_built(tmp_path: Path) -> None:
    """What is written is what is read, and has no faults."""
    built = built_of(tmp_path, {"a.md": "[b](b.md)", "b.md": "# B\n\n[[a]]"})
    assert write_manifest(tmp_path / "manifest.json", built.data, force=False)
    pack = load_pack(tmp_path)
    assert pack.manifest.docs == built.manifest.docs
    assert check(pack) == []


def test_a_manifest_made_by_hand_is_kept(tmp_path: Path) -> None:
    """One that was built is made anew; the same is not written twice; nothing is left beside."""
    path = tmp_path / "manifest.json"
    first = built_of(tmp_path, {"a.md": "x"}).data
    assert write_manifest(path, first, force=False)
    assert not write_manifest(path, first, force=False)
    second = built_of(tmp_path, {"a.md": "y"}).data
    assert write_manifest(path, second, force=False)
    by_hand = json.dumps({**json.loads(second), "built_by": "me"})
    for there in (by_hand, "{", "[]", ""):
        path.write_text(there)
        with pytest.raises(UsageError, match="--force"):
            write_manifest(path, first, force=False)
        assert path.read_text() == there
    assert write_manifest(path, first, force=True)
    assert path.read_bytes() == first
    with pytest.raises(UsageError):
        write_manifest(tmp_path / "nowhere" / "manifest.json", first, force=True)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.md", "manifest.json"]
