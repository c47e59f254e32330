"""Who asks homes, where a server has let nobody else in."""

from pathlib import Path

import pytest
from homes import SmallHome

from kb.errors import OwnerOnly
from kb.home.open_home import OpenHome
from kb.home.spaces.spaces import Spaces
from kb.model.doc import OPERATOR, Scope
from kb.model.source import files_of, names_machine, place_of
from kb.operations.list_docs import ListDocsRequest, run
from kb.operations.scopes import scope_of
from kb.store.content.database import libpq_settings

ALICE = Scope(user="alice")


def opened(home: SmallHome, caller: Scope = OPERATOR) -> OpenHome:
    def searcher() -> None:
        raise AssertionError("a list of docs needs no searcher")

    return OpenHome(store=home.store, content=home.content, searcher=searcher, caller=caller)  # type: ignore[arg-type]


def test_each_home_is_asked_by_whom_it_takes_the_person_for(tmp_path: Path) -> None:
    """A folder beside a home of a role: the operator there, the role here; alone as ever."""
    folder, shared = SmallHome(tmp_path / "folder"), SmallHome(tmp_path / "shared")
    for home in (folder, shared):
        home.put(f"{home.root.name}.md", f"# Private in {home.root.name}")
    homes = [opened(folder), opened(shared, ALICE)]
    assert Spaces(homes[:1]).caller == OPERATOR
    assert Spaces(homes[1:]).caller == ALICE
    for order in (homes, homes[::-1]):
        spaces = Spaces(order)
        (row,) = run(spaces, ListDocsRequest(), spaces.caller).docs
        assert row.title == "Private in folder"
        assert scope_of(spaces, "alice") == ALICE
        assert run(spaces, ListDocsRequest(), ALICE).docs == ()
        for user in ("bob", "local"):
            with pytest.raises(OwnerOnly, match="the role alice is not it"):
                scope_of(spaces, user)
    for home in (folder, shared):
        home.close()


def test_who_may_ask_as_another(tmp_path: Path) -> None:
    """The operator may ask as anybody, and a user only as themselves."""
    home = SmallHome(tmp_path / "home")
    operators, alices = Spaces([opened(home)]), Spaces([opened(home, ALICE)])
    assert scope_of(operators) == OPERATOR
    assert scope_of(operators, "bob") == Scope(user="bob")
    assert scope_of(alices) == scope_of(alices, "alice") == ALICE
    for user in ("bob", "local"):
        with pytest.raises(OwnerOnly, match="the role alice is not it"):
            scope_of(alices, user)
    home.close()


@pytest.mark.parametrize("role", ["alice", "Bob / Co", "a@b:c", "Ünal"])
def test_a_users_files_are_as_those_of_a_machine(role: str) -> None:
    """Whatever a role is called, its name and a machine's are the beginning of a place."""
    machine = files_of(role, "den")
    assert machine.isascii()
    assert names_machine(f"{machine}:/docs/a.md")
    assert place_of(f"{machine}:/docs/a.md") == f"{machine}:/docs"


def test_what_decides_as_whom_libpq_connects() -> None:
    """Its settings do, and no password is among them."""
    env = {"PGUSER": "alice", "HOME": "/", "PGPASSWORD": "x", "PGPASSFILE": "y", "PGHOST": "h"}
    assert libpq_settings(env) == (("PGHOST", "h"), ("PGUSER", "alice"))
