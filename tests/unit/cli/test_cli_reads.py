"""The commands that read: they ask the tools, and print."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kb_cli
import msgspec
import pytest
from commands import HASHING, Home

from kb.home.app import App
from kb.home.spaces.spaces import Spaces
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.operations import entities, list_docs, search, similar

COMMANDS = ("search", "similar", "ls", "show", "entities", "entries")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Three notes, a fourth that was removed, and one that waits to be cut."""
    folder = tmp_path_factory.mktemp("reads")
    for name in ("a", "b", "c", "gone"):
        body = f"The kettle of {name} boils for #tea and @{name}. " * 30
        (folder / f"{name}.md").write_text(f"# Note {name}\n\n{body}\n\n## More\n\n{body}\n")
    home = Home(folder / "home")
    assert home.run("add", "-r", folder).code == 0
    assert home.run("rm", home.ids()["gone.md"], "--yes").code == 0
    (folder / "waiting.md").write_text("# Waits\n\ntea\n")
    assert home.run("add", folder / "waiting.md", "--no-wait").code == 0
    return home


@pytest.fixture(scope="module")
def app(home: Home) -> Iterator[App]:
    with App.open(home.root, load([], HASHING[1:]), create=False) as app:
        yield app


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_read_know_no_store(command: str) -> None:
    """They import neither records nor indexes nor the search: they ask, and print the answer."""
    tree = ast.parse((Path(kb_cli.__path__[0]) / f"{command}.py").read_text("utf-8"))
    rooms = {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kb.")
    }
    low = ("kb.store", "kb.search.index", "kb.search", "kb.store.content", "kb.intake.entities")
    assert any(name.startswith(("kb.operations", "kb.model.search")) for name in rooms)
    assert not [name for name in rooms if name.startswith(low)]


def test_commands_answer_as_the_tools_do(home: Home, app: App) -> None:
    """`--json` prints the answer of the tool, without its budget, and whose store it is."""
    doc_id = home.ids()["a.md"]
    alone = Spaces([app.opened()])
    asked: list[tuple[list[Any], Any]] = [
        (
            ["search", "kettle #tea", "-k", 300, "--doc", doc_id[:8], "--explain"],
            lambda: search.run(
                alone,
                search.SearchRequest(
                    query="kettle #tea",
                    k=300,
                    doc_ids=(doc_id,),
                    explain=True,
                ),
                OPERATOR,
            ),
        ),
        (
            ["search", "kettle", "--max-tokens", 400],
            lambda: search.run(
                alone,
                search.SearchRequest(query="kettle", max_tokens=400),
                OPERATOR,
            ),
        ),
        (
            ["similar", doc_id, "-k", 3],
            lambda: similar.run(
                Spaces([app.opened()]), similar.SimilarRequest(id=doc_id, k=3), OPERATOR
            ),
        ),
        (
            ["entities", "@", "--limit", 2],
            lambda: entities.run(alone, entities.EntitiesRequest(prefix="@", limit=2), OPERATOR),
        ),
    ]
    for args, run in asked:
        answer = msgspec.to_builtins(run())
        expected = {"warnings": (), **answer}
        for hit in answer.get("hits", ()):
            hit["source_space"] = "home"
        assert home.run(*args, "--json").json == msgspec.json.decode(msgspec.json.encode(expected))
        assert answer.get("more") or answer["hits"][0]["rank"] == 1


def test_ls_lists_what_the_tool_lists(home: Home, app: App) -> None:
    """The same docs with the same fields, and the state of each besides."""
    rows = home.run("ls", "--json").json["docs"]
    found = list_docs.run(Spaces([app.opened()]), list_docs.ListDocsRequest(), OPERATOR)
    known = {doc["doc_id"]: doc for doc in msgspec.json.decode(msgspec.json.encode(found.docs))}
    assert rows == [row | known.pop(row["doc_id"]) for row in rows]
    assert known == {}
    assert len(rows) == found.total == 4
    assert {row["status"] for row in rows} == {"active"}


def test_docs_from_one_place(home: Home, tmp_path: Path) -> None:
    """A file, or a folder however it is written; nothing of another place, and no error."""
    folder = home.root.parent
    (tmp_path / "link").symlink_to(folder)

    def found(*options: object) -> set[str]:
        hits = home.run("search", "tea", "--mode", "lexical", *options, "--json").json["hits"]
        return {Path(hit["source"]).name for hit in hits}

    assert found("--source", folder / "a.md") == {"a.md"}
    several = ("--source", folder / "a.md", "--source", tmp_path / "link" / "b.md")
    assert found(*several) == {"a.md", "b.md"}
    assert found("--source", f"{folder}/") == {"a.md", "b.md", "c.md"}
    assert found("--source", f"{folder}/a") == found("--source", "https://a.example") == set()
    listed = home.run("ls", "--source", folder / "b.md", "--json").json["docs"]
    assert [Path(row["source"]).name for row in listed] == ["b.md"]
    asked = home.run("ask", "what boils?", "--source", folder / "c.md", "--json").json
    assert {Path(one["source"]).name for one in asked["sources"]} == {"c.md"}


def test_a_hit_without_a_budget_stands_alone(home: Home) -> None:
    """Neighbours come only where there is a budget to fill; a tiny one cuts even the first hit."""
    plain = home.run("search", "kettle", "-k", 1, "--json").json
    filled = home.run("search", "kettle", "-k", 1, "--max-tokens", 5000, "--json").json
    tiny = home.run("search", "kettle", "-k", 1, "--max-tokens", 5, "--json").json
    lengths = [len(said["hits"][0]["text"]) for said in (tiny, plain, filled)]
    assert lengths == sorted(set(lengths))
    assert (plain["truncated"], filled["truncated"]) == (None, None)
    assert "cut to" in tiny["truncated"]


def test_similar_to_what_waits_says_so(home: Home) -> None:
    """A doc that is not cut yet is there, and nothing can be compared with it."""
    ran = home.run("similar", home.ids()["waiting.md"])
    assert (ran.code, ran.out) == (0, "")
    assert "no passages yet" in ran.err


def test_what_was_removed_is_listed_and_shown_but_not_searched(home: Home) -> None:
    """`kb ls` and `kb show` still know it; no search does, by its id neither."""
    (row,) = home.run("ls", "--status", "tombstoned", "--json").json["docs"]
    shown = home.run("show", row["doc_id"], "--json")
    assert shown.json["doc"]["status"] == "tombstoned"
    assert home.run("search", "tea", "--doc", row["doc_id"]).code == 4
    assert home.run("similar", row["doc_id"]).code == 4


def test_a_home_of_removed_docs_has_none_to_search(tmp_path: Path) -> None:
    """A search says that there are no docs, and how to add some."""
    home, note = Home(tmp_path / "home"), tmp_path / "note.md"
    note.write_text("# Note\n\ntea")
    home.run("add", note)
    home.run("rm", home.ids()["note.md"], "--yes")
    ran = home.run("search", "tea")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "kb: there are no docs to search; add some with: kb add FOLDER\n"
