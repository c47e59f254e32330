"""Entries as a person and a script meet them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Home

BODY = "# T\n\nabout boats\n\n## Hull\n\nthe hull is of oak\n\n## Mast\n\nthe mast is of pine\n"


def entry(ident: str, *more: str, body: str = BODY) -> str:
    return "\n".join(("---", f"zettel_id: {ident}", f"title: About {ident}", *more, "---", body))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def write(home: Home) -> Callable[[str, str], Path]:
    """Writes a file into the home's knowledge folder."""

    def written(name: str, text: str) -> Path:
        path = home.root / "knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return written


def hits(home: Home, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.run("search", query, "--mode", "lexical", "--json").json[
        "hits"
    ]
    return found


def synced(home: Home) -> dict[str, Any]:
    ran = home.run("sync-all", "--interval-min", "0", "--json")
    assert ran.code == 0, ran.err
    (line,) = ran.json["sources"]
    found: dict[str, Any] = line
    return found


def test_faulty_files_are_named_and_still_found(
    home: Home, write: Callable[[str, str], Path]
) -> None:
    """Two with one id, one without, one that breaks off: each with its line, all searched."""
    write("a.md", entry("boats"))
    twice = write("b.md", entry("boats", body="zebra"))
    missing = write("c.md", "---\ntitle: No id\n---\ngiraffe")
    broken = write("sub/d.md", "---\nzettel_id: d\ntitle: a: [\n---\nokapi")
    line = synced(home)
    said = {
        problem["source"]: problem["reason"]
        for problem in line["problems"]
        if "line " in problem["reason"]
    }
    assert (line["kind"], line["added"], len(said)) == ("entries", 4, 3)
    assert said[str(twice)].partition(";")[0].endswith("already has the id boats")
    assert said[str(missing)].startswith("line 1: zettel_id is missing")
    assert said[str(broken)].startswith("line 3: ")
    for word, path in (("zebra", twice), ("giraffe", missing), ("okapi", broken)):
        assert [hit["source"] for hit in hits(home, word)] == [str(path)]
    assert [row["zettel_id"] for row in home.run("entries", "--json").json["entries"]] == ["boats"]

    write("c.md", "---\nzettel_id: giraffes\ntitle: No id\n---\ngiraffe")
    line = synced(home)
    assert (line["added"], line["removed"]) == (1, 1)
    assert [hit["zettel_id"] for hit in hits(home, "giraffe")] == ["giraffes"]
    assert home.run("check").code == 0


def test_references_are_followed_both_ways(home: Home, write: Callable[[str, str], Path]) -> None:
    """`show` names what an entry refers to and what refers to it; what leads nowhere is listed."""
    source = write("a.md", entry("boats", "references: [wood, sails]", "version: 1.2.0"))
    write("b.md", entry("wood", "entry_type: material", "references: [boats]"))
    write("c.md", entry("trees", "references: [wood]"))
    synced(home)
    shown = home.run("show", "boats", "--json").json
    assert shown["doc"]["entry"]["version"] == "1.2.0"
    assert [(one["zettel_id"], one["title"]) for one in shown["references"]] == [
        ("wood", "About wood"),
        ("sails", None),
    ]
    assert [one["zettel_id"] for one in shown["referrers"]] == ["wood"]
    out = home.run("show", "wood").out
    assert "    entry  wood, material, 1.0.0\n" in out
    assert "   refers  boats  About boats\n" in out
    assert "     from  boats  About boats\n     from  trees  About trees\n" in out
    assert "   refers  sails  nothing has this id\n" in home.run("show", "boats").out

    listed = home.run("entries", "--type", "material").out
    assert listed == "wood  1.0.0  material  About wood\n"
    dangling = home.run("entries", "--dangling")
    assert dangling.out == f"boats  refers to sails  {source}\n"
    write("d.md", entry("sails"))
    synced(home)
    assert home.run("entries", "--dangling").out == ""
    assert home.run("show", "nowhere").code == 4


def test_an_entry_is_found_by_its_id_and_by_section(
    home: Home, write: Callable[[str, str], Path]
) -> None:
    """Every passage carries the id; an edit of one section embeds that one alone."""
    write("a.md", entry("boat-building"))
    synced(home)
    assert {hit["heading"][-1] for hit in hits(home, "boat-building")} == {"T", "Hull", "Mast"}
    before = {hit["heading"][-1]: hit["chunk_id"] for hit in hits(home, "boat-building")}
    vectors = home.run("stats", "--json").json["vectors"]
    write("a.md", entry("boat-building", body=BODY.replace("oak", "teak, and of larch")))
    synced(home)
    after = {hit["heading"][-1]: hit["chunk_id"] for hit in hits(home, "boat-building")}
    assert {name for name in before if before[name] != after[name]} == {"Hull"}
    assert home.run("stats", "--json").json["vectors"] == vectors + 1


def test_a_new_entry_is_there_at_once(home: Home) -> None:
    """Its path is printed, it is found, and it is never written over."""
    ran = home.run("new", "Über Boote", "--type", "idea", "--tag", "wood", "--ref", "sails")
    path = home.root / "knowledge/uber-boote.md"
    assert (ran.code, ran.out) == (0, f"{path}\n"), ran.err
    (hit,) = hits(home, "uber-boote")
    assert (hit["zettel_id"], hit["title"], hit["tags"]) == ("uber-boote", "Über Boote", ["wood"])
    text = path.read_text()

    again = home.run("new", "Über Boote")
    assert (again.code, again.out) == (2, "")
    assert str(path) in again.err
    path.rename(path.with_name("moved.md"))
    synced(home)
    moved = home.run("new", "Über Boote")
    assert (moved.code, str(path.with_name("moved.md")) in moved.err) == (2, True)
    assert path.with_name("moved.md").read_text() == text
    assert synced(home)["unchanged"] == 1

    wrong = home.run("new", "T", "--id", "Not so")
    assert (wrong.code, "zettel_id is not an id" in wrong.err) == (2, True)


def test_an_entry_can_be_printed_instead(home: Home) -> None:
    """Nothing is made, and the text is that of the file."""
    ran = home.run("new", "Boats", "--ref", "wood", "--print")
    assert ran.code == 0
    assert ran.out.startswith("---\nzettel_id: boats\ntitle: Boats\n")
    assert not home.root.exists()


def test_a_model_that_reads_less_is_said_by_stats(
    home: Home, write: Callable[[str, str], Path]
) -> None:
    """Where there are entries, and the settings ask for more; cron is told nothing."""
    said = "entry.tokens_max says 512"
    assert said not in home.run("stats").err
    write("a.md", entry("boats"))
    assert home.run("sync-all").err == ""
    assert home.run("stats").err.count(said) == 1
    assert said not in home.run("--cfg", "entry.tokens_max=256", "stats").err


def test_commands_on_docs_take_the_id_of_an_entry(
    home: Home, write: Callable[[str, str], Path]
) -> None:
    """What `kb show` knows, `visibility`, `export` and `rm` know, too; what is gone is unknown."""
    write("a.md", entry("boats"))
    synced(home)
    doc_id = home.run("show", "boats", "--json").json["doc"]["doc_id"]
    assert home.run("visibility", "boats", "public", "--json").json["doc_id"] == doc_id
    assert "the hull is of oak" in home.run("export", "boats", "--to", "-").out
    assert home.run("rm", "boats", "--yes", "--json").json["removed"] == [doc_id]
    assert hits(home, "oak") == []
    assert home.run("rm", "boats", "--yes").code == 4
