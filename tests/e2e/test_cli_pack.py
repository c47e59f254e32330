"""`kb pack` as a person and a script run it."""

import json
from pathlib import Path

import pytest
from commands import Home

ONE = """---
title: The kettle
kind: how-to
tags: [kitchen]
related:
  - {type: part_of, target: kitchen}
---
How to boil water. See [[tea]].
"""
PACKAGE = """
manifest:
  pack_id: boats
  selector: pkg:harbour.boats
  docs:
    - {source_path: docs/hull.md, title: Hull, summary: Of wood., related: [
        {type: part_of, target: docs/boat.md}, {type: extends, target: nowhere}]}
    - {source_path: docs/boat.md, title: Boat, summary: Floats., kind: Thing, tags: [wood]}
    - {source_path: ../secret.md, title: Out, summary: Of reach.}
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of markdown."""
    folder = tmp_path / "My Notes"
    folder.mkdir()
    (folder / "kettle.md").write_text(ONE)
    (folder / "tea.md").write_text("# Tea\n\nLeaves in water.\n")
    (folder / "kitchen.md").write_text("# Kitchen\n\nA room with a [kettle](kettle.md).\n")
    return folder


@pytest.fixture
def boats(tmp_path: Path) -> Path:
    """A package with faults."""
    folder = tmp_path / "boats"
    (folder / "docs").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("secret")
    (folder / "manifest.yaml").write_text(PACKAGE)
    (folder / "docs/hull.md").write_text("# Hull\n\nPlanks.\n")
    (folder / "docs/boat.md").write_text("# Boat\n\n\tFloats.\n")
    return folder


def test_a_pack_from_build_to_rm(home: Home, notes: Path) -> None:
    """Built, registered under its id, asked, and taken off again; its files stay."""
    built = home.run("pack", "build", notes, "--json").json
    assert (built["pack_id"], built["docs"], built["edges"]) == ("my-notes", 3, 3)
    assert (built["written"], built["warnings"]) == (True, [])
    assert home.run("pack", "check", notes).code == 0
    assert not home.root.exists()

    added = home.run("pack", "add", notes).out
    assert added == "my-notes is registered, with 3 docs\nmy-notes: synced, 3 added\n"
    packs = home.run("pack", "ls", "--json").json["packs"]
    assert [(one["pack_id"], one["visibility"], one["form"]) for one in packs] == [
        ("my-notes", "public", "filesystem")
    ]
    assert packs[0]["location"] == str(notes / "manifest.json")
    assert home.run("check").code == 0

    listed = home.run("pack", "list", "my-notes", "--kind", "How To").out
    assert listed == "kettle  The kettle  how_to #kitchen\n"
    read = home.run("pack", "read", "my-notes", "tea.md")
    assert (read.code, read.out) == (0, "# Tea\n\nLeaves in water.\n")
    hits = home.run("pack", "search", "my-notes", "TEA", "--json").json["hits"]
    assert [(hit["document"]["selector"], hit["score"]) for hit in hits] == [
        ("tea", 440),
        ("kettle", 60),
    ]
    edges = home.run("pack", "neighbors", "my-notes", "kettle", "--json").json["edges"]
    assert [(edge["type"], edge["target"]["selector"]) for edge in edges] == [
        ("part_of", "kitchen"),
        ("references", "tea"),
    ]
    assert home.run("pack", "vars", "my-notes").out.startswith("pack.my_notes.kettle  The kettle")
    drawn = home.run("pack", "graph", "my-notes").out
    assert "d0 -->|part_of| d1" in drawn
    assert home.run("pack", "graph", "my-notes", "--format", "dot").out.startswith("digraph")

    gone = home.run("pack", "rm", "my-notes", "--json").json
    assert gone == {"removed": "my-notes", "docs": 3}
    assert home.run("pack", "ls", "--json").json == {"packs": []}
    assert home.run("pack", "show", "my-notes").code == 4
    assert (notes / "manifest.json").exists()


def test_a_pack_by_id_by_selector_and_by_path(home: Home, boats: Path) -> None:
    """All name the same; only what is registered has a name."""
    assert home.run("pack", "show", "boats").code == 4
    by_path = home.run("pack", "show", boats / "manifest.yaml", "--json").json
    assert (by_path["docs"], by_path["kinds"]) == (3, {"reference": 2, "thing": 1})
    home.run("pack", "add", boats, "--visibility", "shared")
    for name in ("boats", "pkg:harbour.boats", boats):
        assert home.run("pack", "show", name, "--json").json == by_path
    assert "pkg:harbour.boats  1  shared" in home.run("pack", "ls").out


def test_filters(home: Home, boats: Path) -> None:
    """Each narrows the list."""

    def listed(*args: str) -> list[str]:
        rows = home.run("pack", "list", boats, *args, "--json").json["docs"]
        return [row["selector"] for row in rows]

    assert listed() == ["hull", "boat", "...secret"]
    assert listed("--tag", "wood") == ["boat"]
    assert listed("--tag", "wood", "--tag", "iron") == []
    assert listed("--kind", "THING") == ["boat"]
    assert listed("--prefix", "h") == ["hull"]
    assert listed("--related-to", "boat") == ["hull"]
    assert listed("--related-to", "boat", "--edge", "extends") == []


def test_what_is_missing_is_told_and_the_rest_goes_on(home: Home, boats: Path) -> None:
    """A link that leads nowhere is a warning; a body out of reach is exit 3 and not read."""
    ran = home.run("pack", "neighbors", boats, "hull")
    assert (ran.code, ran.out) == (0, "part_of     boat  Boat\n")
    assert "nowhere" in ran.err
    ran = home.run("pack", "read", boats, "...secret", "--json")
    assert ran.code == 3
    assert (ran.json["content"], len(ran.json["warnings"])) == (None, 1)
    assert "secret\n" not in ran.out
    ran = home.run("pack", "check", boats, "--json")
    assert (ran.code, ran.json["sound"]) == (3, False)
    assert [found["code"] for found in ran.json["findings"]] == ["dangling_target", "unsafe_path"]
    assert home.run("pack", "check", boats).out.startswith("dangling_target  hull: ")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["show", "nobody"], 4),
        (["show", "x" * 300], 4),
        (["show", "~no-such-user/pack"], 4),
        (["rm", "nobody"], 4),
        (["add", "nowhere/at/all"], 4),
        (["add", "git@packs.example:p"], 2),
        (["add", "{pack}", "--trust", "x"], 2),
        (["export", "--to", "p.tar"], 2),
        (["export", "--tag", "a", "--doc", "b", "--to", "p.tar"], 2),
        (["export", "--tag", "a", "--to", "p.zip"], 2),
        (["export", "--tag", "a", "--to", "p.tar"], 4),
        (["export", "--tag", "a", "--to", "p.tar", "--key", "{pack}/manifest.yaml"], 2),
        (["read", "{pack}", "nobody"], 4),
        (["neighbors", "{pack}", "nobody"], 4),
        (["neighbors", "{pack}", "hull", "--edge", "likes"], 2),
        (["list", "{pack}", "--edge", "extends"], 2),
        (["list", "{pack}", "--related-to", "x", "--edge", "likes"], 2),
        (["graph", "{pack}", "--format", "svg"], 2),
        (["show", "{pack}/docs/hull.md"], 2),
        (["frobnicate"], 2),
        (["build", "{pack}/docs", "--out", "{pack}/../../m.yaml"], 2),
        (["build", "{pack}/docs", "--out", "{pack}/other/m.json"], 2),
        (["build", "{pack}/docs", "--out", "-", "--json"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_exit_codes(home: Home, boats: Path, args: list[str], code: int) -> None:
    """One line that says what is wrong, and nothing on standard output."""
    ran = home.run("pack", *(arg.replace("{pack}", str(boats)) for arg in args))
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("kb: ")


def test_a_manifest_that_is_wrong_is_1(home: Home, boats: Path) -> None:
    """The file, the doc and the field are named, and nothing is registered."""
    (boats / "manifest.yaml").write_text(PACKAGE.replace("title: Boat", "title: [Boat]"))
    ran = home.run("pack", "add", boats)
    assert ran.code == 1
    assert "manifest.docs[1].title" in ran.err
    assert not home.root.exists()


def test_one_id_is_one_pack(home: Home, boats: Path, notes: Path) -> None:
    """Added again it is level; another place under its id is refused; a selector may be shared."""
    home.run("pack", "add", boats, "--visibility", "private")
    (boats / "manifest.yaml").write_text(PACKAGE.replace("boats\n", "boats\n  version: 7\n", 1))
    ran = home.run("pack", "add", boats / "docs" / "..")
    assert (ran.code, "boats/../secret.md" in ran.err) == (3, True)
    pack = home.run("pack", "ls", "--json").json["packs"][0]
    assert (pack["version"], pack["visibility"]) == ("7", "private")

    home.run("pack", "build", notes, "--id", "boats")
    ran = home.run("pack", "add", notes)
    assert ran.code == 2
    assert str(boats) in ran.err
    (notes / "manifest.json").unlink()
    (notes / "manifest.yml").write_text("{selector: pkg:harbour.boats, manifest: {pack_id: b2}}")
    assert home.run("pack", "add", notes).code == 0
    ran = home.run("pack", "show", "pkg:harbour.boats")
    assert (ran.code, "b2, boats" in ran.err) == (2, True)

    (boats / "manifest.yaml").write_text("manifest: {pack_id: ships}")
    assert "now the manifest of ships" in home.run("pack", "show", "boats").err
    (boats / "manifest.yaml").unlink()
    ran = home.run("pack", "show", "boats")
    assert (ran.code, "does not exist any more" in ran.err) == (1, True)


def test_where_a_built_manifest_goes(home: Home, notes: Path) -> None:
    """Above the folder, with paths from there; to standard output; by force over a hand's."""
    above = notes.parent / "pack.json"
    assert home.run("pack", "build", notes, "--out", above, "--id", "n").code == 0
    rows = json.loads(above.read_text())["docs"]
    assert [row["source_path"] for row in rows] == [
        "My Notes/kettle.md",
        "My Notes/kitchen.md",
        "My Notes/tea.md",
    ]
    assert home.run("pack", "check", above).code == 0
    printed = home.run("pack", "build", notes, "--out", "-")
    assert json.loads(printed.out)["pack_id"] == "my-notes"
    assert not (notes / "manifest.json").exists()
    (notes / "manifest.json").write_text("{}")
    assert home.run("pack", "build", notes).code == 2
    assert home.run("pack", "build", notes, "--force").code == 0
    assert (notes / "manifest.json").read_text() == printed.out
    assert home.run("pack", "build", notes).out.endswith("manifest.json unchanged, 3 docs\n")
    (notes / "empty.md").write_text("")
    (notes / "locked.md").symlink_to("tea.md")
    (notes / ".kbignore").write_text("kitchen.md\n")
    ran = home.run("pack", "build", notes)
    assert (ran.code, "empty.md" in ran.err) == (0, True)
    assert "2 docs" in ran.out
