"""The user's store and the project's, read together and apart, by the real command."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from person import Person
from registry_host import entry_text
from test_cli_bad_input import without_rights
from untrusted_homes import trust_home

from kb.store.meta import set_word
from kb.store.store import Store

HARBOUR = "The harbour master paints boats in #summer.\n"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """A note in each store, and a file that both have. The tests only read it."""
    person = Person(tmp_path_factory.mktemp("spaces"))
    person.project_home.mkdir(parents=True)
    for name in ("boats", "rope", "both"):
        (person.project / f"{name}.md").write_text(f"# {name.title()}\n\n{name} {HARBOUR}")
    assert person.kb("--space", "user", "add", "rope.md", "both.md").code == 0
    assert person.kb("add", "boats.md", "both.md").code == 0
    # The caches too, so that nothing is left to be written.
    assert person.kb("search", "harbour").code == 0
    person.ids = {row["title"]: row["doc_id"] for row in person.kb("ls", "--json").json["docs"]}
    return person


@pytest.fixture
def person(filled: Person, tmp_path: Path) -> Iterator[Person]:
    """The same in a copy, to do with as a test likes."""
    shutil.copytree(filled.root, tmp_path / "copy")
    copy = Person(tmp_path / "copy")
    copy.trust()
    copy.ids = filled.ids
    yield copy
    for folder in (tmp_path / "copy").rglob("*"):
        if folder.is_dir():
            folder.chmod(0o700)


def test_both_are_searched(filled: Person) -> None:
    """Each hit says whose it is, ranks count from 1, scores fall, and a file of both is one hit."""
    result = filled.kb("search", "harbour", "--json").json
    hits = result["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    spaces = {hit["title"]: hit["source_space"] for hit in hits}
    assert spaces == {"Boats": "project", "Both": "project", "Rope": "user"}
    assert result["warnings"] == []
    again = filled.kb("--space", "all", "search", "harbour", "--json").json
    assert again == result


def test_one_alone(filled: Person) -> None:
    """`--space` names the store that is read; its scores are its own."""
    found = filled.kb("--space", "user", "search", "rope harbour", "--json").json["hits"]
    assert [(hit["title"], hit["source_space"]) for hit in found] == [
        ("Rope", "user"),
        ("Both", "user"),
    ]
    assert found[1]["score"] not in (1.0, 0.5)


def test_the_space_is_printed_where_there_are_two(filled: Person) -> None:
    """`search`, `similar`, `ls` and `show` say it to a person, but not of a single store."""
    rope = filled.ids["Rope"]
    for args in (["search", "harbour"], ["similar", rope], ["ls"], ["show", rope]):
        both, one = filled.kb(*args).out, filled.kb("--space", "user", *args).out
        space = "project" if args[0] == "similar" else "user"
        lines = [line.replace(str(filled.root), "") for line in both.splitlines()]
        assert any(space in line.split() for line in lines), args
        assert not any(space in line.split() for line in one.splitlines()), args


def test_the_other_commands_that_read(filled: Person) -> None:
    """Docs of both are listed, an id of either is shown, mentions of both are counted."""
    rows = filled.kb("ls", "--json").json
    assert rows["total"] == 4
    assert sorted((row["title"], row["space"]) for row in rows["docs"]) == [
        ("Boats", "project"),
        ("Both", "project"),
        ("Both", "user"),
        ("Rope", "user"),
    ]
    assert rows["warnings"] == []
    for title in ("Boats", "Rope"):
        shown = filled.kb("show", filled.ids[title][:10], "--json").json
        assert shown["doc"]["title"] == title
    similar = filled.kb("similar", filled.ids["Boats"], "--json").json["hits"]
    assert {(hit["title"], hit["source_space"]) for hit in similar} == {
        ("Both", "project"),
        ("Rope", "user"),
    }
    (entity,) = filled.kb("entities", "#", "--json").json["entities"]
    assert (entity["surface"], entity["passages"]) == ("#summer", 4)
    assert filled.hits("--doc", filled.ids["Rope"]) == [("Rope", "user")]
    assert filled.kb("show", "dffffff").code == 4


def test_a_pack_of_either_space_is_read(person: Person) -> None:
    """The nearest one that has it counts, as for agents; a pack's folder counts where none has."""
    for space in ("user", "project"):
        folder = person.project / f"{space}-folder"
        folder.mkdir()
        (folder / "leave.md").write_text(f"# Leave of {space}\n\nThirty days.")
        assert person.kb("pack", "build", str(folder), "--id", f"{space}-pack").code == 0
        assert person.kb("--space", space, "pack", "add", str(folder)).code == 0
    for space in ("user", "project"):
        read = person.kb("pack", "read", f"{space}-pack", "leave", "--json")
        assert read.json["content"].startswith(f"# Leave of {space}")
        assert person.kb("pack", "search", f"{space}-pack", "leave", "--json").json["hits"]
    assert person.kb("--space", "project", "pack", "show", "user-pack").code == 4
    assert person.kb("--space", "project", "pack", "show", "user-folder").code == 0


@pytest.mark.parametrize("gone", ["user", "project"])
def test_a_space_that_is_not_there(person: Person, gone: str) -> None:
    """The other one answers as if it were alone, and nothing is said or made."""
    shutil.rmtree(person.home_of(gone))
    left = "project" if gone == "user" else "user"
    assert {space for _, space in person.hits()} == {left}
    assert not person.home_of(gone).exists()
    if gone == "project":
        person.project_home.mkdir()
        assert {space for _, space in person.hits()} == {"user"}
        assert list(person.project_home.iterdir()) == []


def test_no_space_at_all(tmp_path: Path) -> None:
    """An empty answer says how to begin; nothing is made."""
    person = Person(tmp_path)
    person.project.mkdir(parents=True)
    ran = person.kb("search", "harbour")
    assert (ran.code, ran.out) == (0, "")
    assert "add some with" in ran.err
    assert not person.user_home.exists()


def damage(home: Path, how: str) -> None:
    data = home / "store" / "data.mdb"
    if how == "cut":
        os.truncate(data, 8192)
    elif how == "garbage":
        data.write_bytes(b"this was a store once. " * 4000)
    else:
        with Store.open(home / "store") as store, store.write() as txn:
            set_word(txn, "format", "99")


@pytest.mark.parametrize("how", ["cut", "garbage", "newer"])
@pytest.mark.parametrize("broken", ["user", "project"])
def test_a_damaged_space_is_left_out_by_name(person: Person, broken: str, how: str) -> None:
    """The other one answers, exit code 0; a warning says which is left out and what to do."""
    whole = "project" if broken == "user" else "user"
    damage(person.home_of(broken), how)
    ran = person.kb("search", "harbour", "--json")
    assert ran.code == 0, ran.err
    assert {hit["source_space"] for hit in ran.json["hits"]} == {whole}
    (said,) = ran.json["warnings"]
    assert said.startswith(f"the {broken} space is left out")
    assert f"kb --space {broken} check" in said
    assert person.kb("--space", broken, "search", "harbour").code == 5


def test_every_command_that_reads_goes_on_beside_a_damaged_space(person: Person) -> None:
    """And says so; but what it does not find may be in the one that cannot be read."""
    ident = person.ids["Boats"]
    damage(person.user_home, "garbage")
    for args in (["search", "harbour"], ["ls"], ["show", ident], ["entities"], ["similar", ident]):
        ran = person.kb(*args)
        assert ran.code == 0, ran.err
        assert "kb: the user space is left out" in ran.err
    assert person.kb("show", "dffffff").code == 5


def test_no_space_can_be_read(person: Person) -> None:
    """The error is the store's own, with its exit code."""
    for space in ("user", "project"):
        damage(person.home_of(space), "garbage")
    ran = person.kb("search", "harbour")
    assert (ran.code, ran.out) == (5, "")
    assert len(ran.err.splitlines()) == 1


def test_settings_that_cannot_be_read(person: Person) -> None:
    """A mistake in one home's settings leaves that one out; one in the call is an error."""
    (person.user_home / "kb.toml").write_text("[search]\nrrf = 1\n")
    ran = person.kb("search", "harbour", "--json")
    assert ran.code == 0
    assert {hit["source_space"] for hit in ran.json["hits"]} == {"project"}
    assert "kb.toml:2" in ran.json["warnings"][0]
    assert person.kb("--cfg", "search.rrf_k=0", "search", "harbour").code == 2


def test_a_read_only_space_is_read(person: Person) -> None:
    """Nothing is written to it, and nothing is said of it."""
    prefix = without_rights()
    before = person.hits()
    places = [person.user_home, *(p for p in person.user_home.rglob("*") if p.is_dir())]
    files = {p: p.stat().st_mtime_ns for p in person.user_home.rglob("*") if p.is_file()}
    for path in (*places, *files):
        path.chmod(0o500 if path in places else 0o400)
    assert person.hits(prefix=prefix) == before
    assert {p: p.stat().st_mtime_ns for p in person.user_home.rglob("*") if p.is_file()} == files


def test_a_space_that_may_not_be_entered(person: Person) -> None:
    """It is left out by name, and the other one answers."""
    prefix = without_rights()
    person.user_home.chmod(0o000)
    ran = person.kb("search", "harbour", "--json", prefix=prefix)
    person.user_home.chmod(0o700)
    assert ran.code == 0, ran.err
    assert {hit["source_space"] for hit in ran.json["hits"]} == {"project"}
    assert "Permission denied" in ran.json["warnings"][0]


def test_the_projects_version_of_a_file_is_the_one(person: Person) -> None:
    """What the user's store still holds of it is not answered, by other words neither."""
    note = person.project / "plan.md"
    note.write_text(f"# Plan\n\nplan {HARBOUR}")
    assert person.kb("--space", "user", "add", note).code == 0
    note.write_text("# Plan\n\nNow of anchors alone.\n")
    assert person.kb("add", note).code == 0
    found = dict(person.hits())
    assert found.get("Plan") == "project"
    assert person.kb("rm", "--yes", person.doc_ids["Plan"]).code == 0
    assert dict(person.hits())["Plan"] == "user"


def test_equal_texts_of_two_files_are_one_hit(person: Person) -> None:
    """Whatever the files are called."""
    text = "# Copy\n\nThe lighthouse keeper sleeps.\n"
    for name, space in (("here.md", "project"), ("there.md", "user")):
        (person.project / name).write_text(text)
        assert person.kb("--space", space, "add", name).code == 0
    hits = person.kb("search", "lighthouse keeper", "--json").json["hits"]
    same = [hit for hit in hits if hit["title"] == "Copy"]
    assert [(Path(hit["source"]).name, hit["source_space"]) for hit in same] == [
        ("here.md", "project")
    ]


def test_a_project_in_a_project(person: Person) -> None:
    """The nearest counts, and `kb doctor` tells of the one around it."""
    inner = person.project / "part"
    (inner / ".kb").mkdir(parents=True)
    (inner / "sail.md").write_text(f"# Sail\n\nsail {HARBOUR}")
    assert person.kb("add", "sail.md", cwd=inner).code == 0
    assert {space for title, space in person.hits(cwd=inner) if title != "Sail"} == {"user"}
    findings = person.kb("doctor", "--json", cwd=inner).json["findings"]
    (nested,) = [one for one in findings if "another project" in one["problem"]]
    assert str(person.project_home) in nested["problem"]
    others = person.kb("doctor", "--json").json["findings"]
    assert not any("another project" in one["problem"] for one in others)


def test_which_space_is_meant(filled: Person) -> None:
    """No project outside of one; a named home alone; one space for what is not just read."""
    outside = filled.kb("--space", "project", "ls", cwd=filled.root)
    assert outside.code == 2
    assert "no .kb/ folder here or above" in outside.err
    elsewhere = filled.root / "elsewhere"
    missing = filled.kb("search", "harbour", "--json", env={"KB_HOME": str(elsewhere)})
    assert (missing.code, missing.json["hits"]) == (0, [])
    assert missing.err == f"kb: there is no home at {elsewhere} yet\n"
    assert {space for _, space in filled.hits("-k", "9", cwd=filled.root)} == {"user"}
    for home, name in ((filled.user_home, "user"), (filled.project_home, "project")):
        assert {space for _, space in filled.hits(env={"KB_HOME": str(home)})} == {name}
    copied = filled.root / "plain"
    shutil.copytree(filled.user_home, copied)
    trust_home(copied, filled.root / "data")
    ran = filled.kb("--home", copied, "search", "harbour", "--json")
    assert {hit["source_space"] for hit in ran.json["hits"]} == {"home"}
    for args in (["add", "boats.md"], ["compact"], ["worker", "--drain"], ["stats"]):
        refused = filled.kb("--space", "all", *args)
        assert (refused.code, refused.out) == (2, "")
        assert "one space" in refused.err


def test_the_registries_of_all_spaces_are_synced(tmp_path: Path) -> None:
    """One report adds up, and each line says its space; what one cannot reach stops no other."""
    person = Person(tmp_path)
    person.project_home.mkdir(parents=True)
    shared = person.root / "shared"
    for space in ("user", "project"):
        source, place = person.root / f"{space}-entries", shared / space
        source.mkdir()
        (source / "boats.md").write_text(entry_text(f"{space}-boats"))
        published = person.kb("registry", "publish", source, "--to", place)
        assert published.code == 0, published.err
        assert person.kb("--space", space, "registry", "add", "team", place).code == 0
    ran = person.kb("--space", "all", "sync-knowledge", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["new"] == ran.json["seen"] == 2
    assert {(line["space"], line["zettel_id"]) for line in ran.json["entries"]} == {
        ("user", "user-boats"),
        ("project", "project-boats"),
    }
    assert [line["space"] for line in ran.json["registries"]] == ["project", "user"]
    shutil.rmtree(shared / "user")
    again = person.kb("--space", "all", "sync-knowledge", "--json")
    assert again.code == 3
    assert "user: no registry could be read" in again.err


def test_what_fits_in_no_space_is_weak(filled: Person) -> None:
    """Of both spaces together, too; a least score gives silence."""
    hits = filled.kb("search", "flurbelgrmpf", "--json").json["hits"]
    assert {hit["source_space"] for hit in hits} == {"user", "project"}
    assert all(hit["weak"] and hit["score"] < 0.5 for hit in hits)
    assert filled.kb("search", "flurbelgrmpf", "--min-score", "0.5", "--json").json["hits"] == []
    kept = filled.kb("search", "harbour", "--min-score", "0.5", "--json").json["hits"]
    assert {hit["source_space"] for hit in kept} == {"user", "project"}
    assert all(hit["score"] >= 0.5 and not hit["weak"] for hit in kept)
    assert filled.kb("ask", "who is flurbelgrmpf?", "--json").json["found"] is False


def test_git_is_told_to_leave_out_what_kb_keeps(person: Person, tmp_path: Path) -> None:
    """In a project's home alone, and not over a file of its owner's; the rest can be committed."""
    from dulwich.ignore import IgnoreFilter

    ignored = IgnoreFilter.from_path(person.project_home / ".gitignore")
    kept = {"kb.toml", "config.d", "knowledge", ".gitignore"}
    written = {path.name for path in person.project_home.iterdir()}
    assert {name for name in written if not ignored.is_ignored(name)} <= kept
    assert ignored.is_ignored("store")
    assert not ignored.is_ignored("knowledge/store/note.md")
    assert not list(person.user_home.glob(".gitignore"))
    other = tmp_path / "other" / ".kb"
    other.mkdir(parents=True)
    (other / ".gitignore").write_text("*\n")
    assert person.kb("--home", str(other), "add", person.project / "rope.md").code == 0
    assert (other / ".gitignore").read_text() == "*\n"
