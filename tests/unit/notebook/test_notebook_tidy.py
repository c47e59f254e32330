"""The notebook put in order: what is found, what one commit does, and what stays a person's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from notebooks import WAIT_S, NoteHome, commit_file, git, needs_git

from kb.errors import CannotUndo
from kb.knowledge.notebook import NotebookChanges, TidyReport, look, tidy
from kb.knowledge.notebook.likeness import lowest, pairs, words_of
from kb.knowledge.notebook.merging import merged, parts_only_in

OAK = (
    "# Keel\n\nThe keel is made of old oak from the hills, and it was laid in the spring of the "
    "year in which the yard burned down.\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[NoteHome]:
    home = NoteHome(tmp_path)
    home.open()
    yield home
    home.close()


def tidied(home: NoteHome) -> TidyReport:
    return tidy(home.root, home.home.clock, home.take_in, home.may_merge, WAIT_S)


def text_of(home: NoteHome, path: str) -> str:
    assert git(home.root, "status", "--porcelain") == ""
    return (home.root / path).read_text("utf-8")


def test_a_folder_without_a_notebook(tmp_path: Path) -> None:
    """Nothing is found, and none is made."""
    home = NoteHome(tmp_path)
    assert look(home.root, home.may_merge) == tidied(home) == TidyReport()
    assert not home.root.exists()
    home.close()


def test_a_notebook_that_is_in_order(home: NoteHome) -> None:
    """Nothing is found, and no commit is made."""
    home.place("# Mast\n\nSee [the keel](keel.md), [a page](https://example.org/x.md).\n", "boats")
    home.place(
        "# Keel\n\nSee [[Mast]], ![plan](../INDEX.md), `[[none]]`, [out](../../x.md).\n", "boats"
    )
    before = home.subjects()
    assert look(home.root, home.may_merge) == tidied(home) == TidyReport()
    assert home.subjects() == before


@needs_git
def test_links_that_lead_nowhere(home: NoteHome) -> None:
    """Each is listed with its line; those of files that have moved lead there, the rest stay."""
    home.place("# Keel\n\nOak.\n", "boats")
    home.place(
        "# Mast\n\n[a](keel.md#oak), [b](./keel.md 'The keel')\n\n[[boats/keel]], [[nobody]]\n",
        "boats",
    )
    git(home.root, "mv", "boats/keel.md", "old keel.md")
    git(home.root, "commit", "-q", "-m", "NoteMove")
    found = look(home.root, home.may_merge)
    said = [(one.path, one.line, one.target, one.moved_to) for one in found.broken_links]
    assert said == [
        ("boats/mast.md", 3, "keel.md", "old keel.md"),
        ("boats/mast.md", 3, "./keel.md", "old keel.md"),
        ("boats/mast.md", 5, "boats/keel", "old keel.md"),
        ("boats/mast.md", 5, "nobody", None),
    ]
    assert [(one.path, one.moved_to) for one in found.dead_entries] == [
        ("boats/keel.md", "old keel.md")
    ]
    done = tidied(home)
    assert done.commit is not None
    assert text_of(home, "boats/mast.md") == (
        "# Mast\n\n[a](../old%20keel.md#oak), [b](../old%20keel.md 'The keel')\n\n"
        "[[old keel]], [[nobody]]\n"
    )
    assert sorted(home.listed()) == ["boats/mast.md", "old keel.md"]
    after = look(home.root, home.may_merge)
    assert [one.target for one in after.broken_links] == ["nobody"]
    assert [one.path for one in after.odd_names] == ["old keel.md"]
    assert (after.dead_entries, after.unlisted) == ((), ())


@needs_git
def test_links_of_a_note_that_has_moved_itself(home: NoteHome) -> None:
    """They lead where they led from its old place."""
    home.place("# Keel\n", "boats")
    home.place("# Mast\n\n[a](keel.md)\n", "boats")
    (home.root / "yard").mkdir()
    git(home.root, "mv", "boats/mast.md", "yard/mast.md")
    git(home.root, "commit", "-q", "-m", "NoteMove")
    tidied(home)
    assert text_of(home, "yard/mast.md") == "# Mast\n\n[a](../boats/keel.md)\n"


@needs_git
def test_the_list_is_brought_level(home: NoteHome) -> None:
    """Notes are listed and dead lines go, by one commit; words of a person's stay."""
    home.place("# One\n\nFirst.\n", "work")
    commit_file(home.root, "own/two.md", "# Two\n\nSecond.\n")
    commit_file(home.root, "own/none.md", " \n")
    commit_file(home.root, ".hidden/x.md", "x\n")
    index = text_of(home, "INDEX.md")
    commit_file(home.root, "INDEX.md", index + "\nMy words.\n- [Gone](work/gone.md)\n")
    found = look(home.root, home.may_merge)
    assert (found.unlisted, found.empty) == (("own/two.md",), ("own/none.md",))
    assert [(one.path, one.moved_to) for one in found.dead_entries] == [("work/gone.md", None)]
    before = home.subjects()
    done = tidied(home)
    assert home.subjects()[:-1] == before
    assert home.subjects()[-1] == f"tidy({done.tidy_id}): 1 struck, 1 listed"
    assert text_of(home, "INDEX.md") == (
        index + "\nMy words.\n\n## Own\n- [Two](own/two.md) — Second.\n"
    )
    assert git(home.root, "log", "-1", "--format=%b").split("\n")[:-2] == list(done.done)
    assert tidied(home).commit is None


@needs_git
def test_notes_that_say_nearly_the_same_are_merged(home: NoteHome) -> None:
    """The one listed first stays, gets what only the other says, and links follow."""
    home.place(OAK, "boats")
    home.place(OAK + "\nIt leaks [here](../plan.md).\n", "yard")
    home.place("# Log\n\n[keel](../yard/keel.md), [[yard/keel]]\n", "log")
    commit_file(home.root, "plan.md", "# Plan\n\nNone.\n")
    (pair,) = look(home.root, home.may_merge).duplicates
    assert (pair.keep, pair.drop, pair.held_back) == ("boats/keel.md", "yard/keel.md", None)
    assert pair.adds == ("It leaks [here](../plan.md).",)
    done = tidied(home)
    assert "boats/keel.md" in home.listed()
    assert "yard/keel.md" not in {*home.listed(), *home.seen(), *home.committed()}
    added = OAK.rstrip() + "\n\n## From Keel\n\nIt leaks [here](../plan.md).\n"
    assert text_of(home, "boats/keel.md") == added
    assert text_of(home, "log/log.md") == "# Log\n\n[keel](../boats/keel.md), [[boats/keel]]\n"
    assert home.arrivals[-1] == NotebookChanges(
        added={"boats/keel.md": (), "log/log.md": ()}, removed=("yard/keel.md",)
    )
    assert look(home.root, home.may_merge) == TidyReport()
    assert done.tidy_id is not None
    before = {path: text for path, text in home.committed().items() if path != "INDEX.md"}
    undone = home.undo(done.tidy_id)
    assert undone.path == "1 merged, 1 listed"
    assert text_of(home, "yard/keel.md").startswith(OAK)
    assert set(home.committed()) == {*before, "yard/keel.md", "INDEX.md"}
    assert home.arrivals[-1] == NotebookChanges(
        added={"boats/keel.md": (), "log/log.md": (), "yard/keel.md": ()}
    )
    with pytest.raises(CannotUndo, match="has undone it already"):
        home.undo(done.tidy_id)


@needs_git
def test_a_merge_is_undone_under_later_notes(home: NoteHome) -> None:
    """The note that was dropped is listed again, and later entries stay."""
    home.place(OAK, "boats")
    home.place(OAK, "yard")
    done = tidied(home)
    home.place("# Later\n\nWords.\n", "work")
    assert done.tidy_id is not None
    home.undo(done.tidy_id)
    assert sorted(home.listed()) == ["boats/keel.md", "work/later.md", "yard/keel.md"]


@needs_git
@pytest.mark.parametrize("edited", ["boats/keel.md", "yard/keel.md", "log/log.md", "INDEX.md"])
def test_what_a_person_is_changing_stays(home: NoteHome, edited: str) -> None:
    """A merge that touches a file with changes is left, whole, and the file is named."""
    home.place(OAK, "boats")
    home.place(OAK, "yard")
    home.place("# Log\n\n[keel](../yard/keel.md)\n", "log")
    (home.root / edited).write_text("mine", "utf-8")
    before = (home.committed(), home.subjects())
    done = tidied(home)
    assert (done.commit, done.left) == (None, (edited,))
    assert (home.committed(), home.subjects()) == before
    assert (home.root / edited).read_text("utf-8") == "mine"


@needs_git
def test_a_note_that_says_more_of_itself_is_not_merged(home: NoteHome) -> None:
    """Front matter cannot go below: a person decides."""
    home.place(OAK, "boats")
    home.place("---\ntags: [wood]\n---\n" + OAK, "yard")
    (pair,) = look(home.root, home.may_merge).duplicates
    assert pair.held_back is not None
    assert tidied(home).commit is None


def test_likeness_of_words_and_characters() -> None:
    """One word of many may differ, in any script; other texts are far."""
    chinese = "龙骨是用山上的老橡木做的，去年春天在船坞里铺好，那一年船坞着了火。"
    texts = {
        "a": OAK,
        "b": OAK.replace("spring", "autumn").upper(),
        "c": chinese,
        "d": chinese.replace("春天", "秋天"),
        "e": "Soup needs salt, and salt needs soup.",
    }
    found = pairs([(path, lowest(text)) for path, text in texts.items()], texts.__getitem__)
    assert sorted((pair.a, pair.b) for pair in found) == [("a", "b"), ("c", "d")]
    assert [pair.likeness for pair in found] == sorted((p.likeness for p in found), reverse=True)
    assert words_of("Ｋeel 龙骨") == ["keel", "龙", "骨"]


def test_likeness_of_thousands_is_bounded() -> None:
    """Notes that are made alike by a template are not compared each with each."""
    texts = {
        f"{n:04}": f"{'daily notes of the yard ' * 3}{n * 7919} {n * 104729}" for n in range(3_000)
    }
    texts["copy"] = texts["0007"]
    read: list[str] = []

    def text(path: str) -> str:
        read.append(path)
        return texts[path]

    found = pairs([(path, lowest(one)) for path, one in texts.items()], text)
    assert [(pair.a, pair.b) for pair in found] == [("0007", "copy")]
    assert len(read) < 100


def test_parts_that_only_one_note_has() -> None:
    """Items, paragraphs and code with the heading above them; marks count, white space does not."""
    kept = "# T\n\nSame  words.\n\n- one\n- two\n"
    other = "# U\n\nSame words.\n\n- one\n- -two\n\n## More\n\nNew.\n\n## Bare\n\n```\nx\n```\n"
    parts = parts_only_in(other, kept)
    assert parts == ("- -two", "### More", "New.", "### Bare", "```\nx\n```")
    assert merged("a\r\n", "T", ("b",)) == "a\r\n\r\n## From T\r\n\r\nb\r\n"
    assert merged(kept, "T", ()) == kept
