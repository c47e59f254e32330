"""A home that the user named and that is not there: who makes it, and who says that it is not."""

import json
from pathlib import Path

import pytest
from person import Person

from kb.home.app import App
from kb.model.config import load
from kb.operations import compact
from kb.operations.compact import CompactRequest
from kb.upkeep.compactor.report import CompactReport


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    person.project.mkdir(parents=True)
    return person


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["sync-all"], 0),
        (["worker", "--drain"], 0),
        (["worker"], 2),
        (["watch"], 4),
        (["check", "--repair"], 0),
        (["pull"], 0),
        (["sync-knowledge"], 0),
        (["note", "undo", "0123"], 4),
        (["note", "push"], 1),
        (["note", "tidy", "--apply"], 0),
        (["signals"], 0),
        (["stats"], 0),
        (["compact"], 0),
        (["ls"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_on_what_is_there_make_no_home(person: Person, args: list[str], code: int) -> None:
    """The place may be mistyped: the command says that nothing is there, and makes nothing."""
    typo = person.root / "typo"
    ran = person.kb("--home", typo, *args)
    assert ran.code == code
    assert ran.err.startswith(f"kb: there is no home at {typo} yet\n")
    assert not typo.exists()


def test_a_worker_that_stays_needs_a_home(person: Person) -> None:
    """At a mistyped place it would wait for ever."""
    ran = person.kb("--home", person.root / "typo", "worker")
    assert ran.err.endswith("kb: a worker that stays needs a home; `kb init` makes one\n")


def test_a_folder_that_is_there_becomes_a_home(person: Person) -> None:
    """A service's empty folder, or a project's home as git brings it: its entries are taken in."""
    home = person.root / "state"
    (home / "knowledge").mkdir(parents=True)
    (home / "knowledge" / "oars.md").write_text("---\nid: oars\ntitle: Oars\n---\n\nMend oars.\n")
    ran = person.kb("--home", home, "sync-all", "--json")
    assert (ran.code, ran.err, json.loads(ran.out)["added"]) == (0, "", 1)


def test_the_default_home_is_made(person: Person) -> None:
    """Nobody has named it, so nobody has mistyped it."""
    ran = person.kb("sync-all")
    assert (ran.code, ran.out, ran.err) == (0, "nothing is due\n", "")
    assert (person.user_home / "store").is_dir()


def test_what_was_opened_as_missing_stays_so(tmp_path: Path) -> None:
    """Another process makes the home meanwhile: nothing of that is taken for waste."""
    settings = load([], {})
    with App.open(tmp_path / "home", settings, create=False) as early:
        App.open(tmp_path / "home", settings).close()
        assert not early.is_made
        assert early.catch_up() == []
        assert compact.run(early, CompactRequest(grace_min=0)) == CompactReport()
    assert not list((tmp_path / "home" / "index").iterdir())
