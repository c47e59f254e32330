"""A stranger in front of an empty home: each answer is a line with what to do next."""

from pathlib import Path

import pytest
from commands import HASHING, KB, Home, run, surroundings

NO_DOCS = "kb: there are no docs to search; add some with: kb add FOLDER\n"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Of somebody who has never used kb."""
    return surroundings(HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data"))


def test_the_help_ends_with_how_to_start(env: dict[str, str]) -> None:
    """`kb` alone is its help, and the last line is the first step."""
    alone = run([KB], env=env)
    assert (alone.code, alone.out) == (0, run([KB, "--help"], env=env).out)
    last = alone.out.splitlines()[-1]
    assert last.strip() == "Start with: kb add FOLDER, then: kb search WORDS"


@pytest.mark.parametrize("command", [("search", "tea"), ("ask", "tea"), ("ls",)], ids=" ".join)
def test_an_empty_home_says_how_to_fill_it(
    env: dict[str, str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    """It is no error, and no home is made for it."""
    ran = run([KB, *command], env=env)
    assert (ran.code, ran.err) == (0, NO_DOCS)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", ["show", "open", "export"])
def test_nothing_can_be_shown_of_an_empty_home(env: dict[str, str], command: str) -> None:
    """The id or path is repeated, with what to do."""
    ran = run([KB, command, "tea.md"], env=env)
    told = "nothing here has the id or the path tea.md; there are no docs yet; add some with: "
    assert (ran.code, ran.err) == (4, f"kb: {told}kb add FOLDER\n")


def test_nothing_to_take_in(env: dict[str, str], tmp_path: Path) -> None:
    """An empty folder, and one of disk images, are told apart; neither is an error."""
    empty, images = tmp_path / "empty", tmp_path / "images"
    empty.mkdir()
    images.mkdir()
    (images / "a.img").write_text("x")
    none = run([KB, *HASHING, "add", str(empty)], env=env)
    told = f"kb: there is no file in {empty}; kb add FOLDER takes in another one\n"
    assert (none.code, none.out, none.err) == (0, "nothing of 0 scanned\n", told)
    skipped = run([KB, *HASHING, "add", str(images)], env=env)
    assert (skipped.code, skipped.out) == (0, "1 skipped of 1 scanned\n")
    last = skipped.err.splitlines()[-1]
    assert last == (
        "kb: nothing here is of a kind that kb takes from folders; --ext LIST takes others"
    )


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("search", "say what to search for, as in: kb search boiler quote; or give --batch FILE"),
        ("tagz", "there is no command 'tagz'"),
        ("delet x", "there is no command 'delet'; did you mean 'rm'?"),
        (
            "create",
            "there is no command 'create'; did you mean 'add' or 'new' or 'backup create'?",
        ),
        (
            "undo",
            "there is no command 'undo'; a doc that kb rm removed comes back with kb add FILE",
        ),
        ("rename a b", "there is no command 'rename'; move the file itself, and kb sync-all"),
        ("restore", "there is no command 'restore'; did you mean 'backup restore'?"),
        ("reindex", "there is no command 'reindex'; did you mean 'check'?"),
        ("note search x", "there is no command 'search'; did you mean 'kb search'?"),
        ("sources list", "there is no command 'list'; did you mean 'kb sources'?"),
        ("config delete x", "there is no command 'delete'; did you mean 'unset'?"),
        ("token create", "there is no command 'create'; did you mean 'add'?"),
        ("note show x", "there is no command 'show'; did you mean 'get'?"),
        ("registry lst", "there is no command 'lst'; did you mean 'ls'?"),
        ("pack remove x", "there is no command 'remove'; did you mean 'rm'?"),
        ("serve --port abc", "invalid value for '--port': 'abc' is no whole number"),
        ("search -k 0 x", "invalid value for '-k' / '--limit': 0 is not from 1 to 10000"),
        ("ls --limit -1", "invalid value for '--limit': -1 is less than 0"),
        ("ls --status x", "invalid value for '--status': 'x' is not one of 'active', 'superseded'"),
        ("config set foo bar", "unknown setting foo"),
        ("--space project ls", "no .kb/ folder here or above; `kb init --project` makes one here"),
    ],
)
def test_a_call_that_lacks_something_says_what(env: dict[str, str], typed: str, told: str) -> None:
    """In a line, with exit code 2."""
    ran = run([KB, *typed.split()], env=env, cwd=Path(env["HOME"]))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[0].startswith(f"kb: {told}")


def test_a_tag_that_stands_in_texts_alone(tmp_path: Path) -> None:
    """#people in a plain text is no tag of it; how it is found is said, ready to be typed."""
    home, note = Home(tmp_path / "home"), tmp_path / "lian.txt"
    note.write_text("# Lian\n\nHeating engineer. #people\n")
    home.run("add", note)
    for tag in ("people", "#people"):
        ran = home.run("search", "engineer", "--tag", tag)
        told = f"no doc has the tag '{tag}', but passages mention #people: kb search "
        assert ran.err.startswith(f"kb: {told}--require-entity '#people'\n")
    assert "lian" in home.run("search", "engineer", "--require-entity", "#people").out


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    """As a file is shown by its path, what is like it is found, and it is removed.

    Nothing is removed by a part of a name, which may mean another file.
    """
    home, folder = Home(tmp_path / "home"), tmp_path / "notes"
    folder.mkdir()
    for name in ("boiler", "radio"):
        (folder / f"{name}.md").write_text(f"# The {name}\n\nThe {name} is beside the meter.\n")
    home.run("add", folder)
    like = home.run("similar", "notes/boiler.md", "--json", cwd=tmp_path).json
    assert [hit["title"] for hit in like["hits"]] == ["The radio"]
    seen = home.run("visibility", "notes/boiler.md", "public", "--json", cwd=tmp_path).json
    assert (seen["doc_id"], seen["visibility"]) == (home.ids()["boiler.md"], "public")
    part = home.run("rm", "boile", "--yes")
    assert part.code == 4
    assert str(folder / "boiler.md") in part.err
    gone = home.run("rm", "notes/boiler.md", folder / "radio.md", "--yes", cwd=tmp_path)
    assert (gone.code, gone.out) == (0, "2 docs removed\n")


def test_ls_of_a_place(tmp_path: Path) -> None:
    """A folder or a file, relative to here, lists what --source does."""
    home, folder = Home(tmp_path / "home"), tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("# A")
    (folder / "deep" / "b.md").write_text("# B")
    home.run("add", folder)
    deep = home.run("ls", "notes/deep", cwd=tmp_path)
    assert (deep.code, deep.out) == (0, home.run("ls", "--source", folder / "deep").out)
    assert str(folder / "deep" / "b.md") in deep.out
    assert "a.md" not in deep.out
    both = home.run("ls", folder / "a.md", folder / "deep", "--json")
    assert both.json["total"] == 2


def test_what_is_no_file_and_looks_like_an_address_is_said(env: dict[str, str]) -> None:
    """Whoever leaves the scheme out is told of it; another name is just no file."""
    ran = run([KB, *HASHING, "add", "www.example.org/page", "example.com", "notes.md"], env=env)
    assert ran.code == 3
    said = "no such file; a page has its whole address, as"
    assert f"www.example.org/page: {said} https://www.example.org/page\n" in ran.err
    assert f"example.com: {said} https://example.com\n" in ran.err
    assert "notes.md: no such file\n" in ran.err
