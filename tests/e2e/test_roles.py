"""A home in a database that several roles use: each has docs of its own, and its owner sees all."""
# Long because every way to ask is here, with the same roles.

import json
import os
from pathlib import Path

import pytest
from commands import Ran
from http_server import serving
from kb_cli.main import COMMANDS
from mcp import Client
from mcp_clients import by_stdio, text_of
from nodes import Node
from postgres_server import PostgresServer

import kb
from kb.errors import NotYours
from kb.store.content.database import database_address

OPEN_DOCS = ["Owner public", "Owner shared"]
SECRETS = ("xylem", "Owner private", "/quiet/")
"""What stands in the owner's private docs, their titles and their places, and nowhere else."""


@pytest.fixture
def owner(postgres: PostgresServer, tmp_path: Path) -> Node:
    """The role that makes the home, with a doc of each visibility; the private one is a file's."""
    node = Node(tmp_path / "owner", postgres.home(), KB_MACHINE="desk")
    for visibility in ("public", "shared"):
        text = f"# Owner {visibility}\n\nA walrus swims. #owner{visibility}\n"
        done = node.run("add", "-", "--visibility", visibility, stdin=text)
        assert done.code == 0, done.err
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    (quiet / "walrus.md").write_text(
        "# Owner private\n\nA walrus says hush to the xylem. #hush @hush\n"
    )
    assert node.run("add", quiet).code == 0
    return node


@pytest.fixture
def alice(owner: Node, postgres: PostgresServer) -> Node:
    """Another role, on the owner's machine."""
    home = postgres.home_as("alice", owner.home)
    return Node(owner.folder.parent / "alice", home, KB_MACHINE="desk")


@pytest.fixture
def bob(owner: Node, postgres: PostgresServer) -> Node:
    """A role whose name no address and no place can have as it is, on another machine."""
    home = postgres.home_as("Bob / Co", owner.home)
    return Node(owner.folder.parent / "bob", home, KB_MACHINE="den")


def rows(node: Node, *args: object) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = node.run("ls", *args, "--json").json["docs"]
    return listed


def ids(node: Node) -> dict[str, str]:
    return {row["title"]: row["doc_id"] for row in rows(node)}


def seen(node: Node) -> list[str]:
    """The titles of what is listed, which is what is found."""
    titles = sorted(ids(node))
    assert sorted({hit["title"] for hit in node.hits("walrus")}) == titles
    return titles


def add(node: Node, title: str, *options: str) -> str:
    """Add a text; the id of its doc."""
    text = f"# {title}\n\nThe walrus of {title} sleeps.\n"
    added = node.run("add", "-", "--title", title, *options, "--json", stdin=text)
    assert added.code == 0, added.err
    return str(added.json["docs"][0]["doc_id"])


def test_a_role_has_docs_of_its_own(owner: Node, alice: Node, bob: Node) -> None:
    """What a role adds is private to it unless it says otherwise; the home's owner sees all."""
    assert seen(alice) == seen(bob) == OPEN_DOCS
    add(alice, "Mine")
    add(alice, "Ours", "--visibility", "shared")
    assert seen(alice) == ["Mine", "Ours", *OPEN_DOCS]
    assert seen(bob) == ["Ours", *OPEN_DOCS]
    assert seen(owner) == ["Mine", "Ours", "Owner private", *OPEN_DOCS]
    shown = owner.run("show", ids(owner)["Mine"], "--json").json["doc"]
    assert (shown["owner"], shown["visibility"]) == ("alice", "private")
    assert [row["value"] for row in bob.run("facets", "--json").json["tags"]] == [
        *("ownerpublic", "ownershared"),
    ]
    # One text of two roles is two docs.
    assert add(bob, "Mine") != ids(alice)["Mine"]
    quiet = owner.folder.parent / "quiet" / "walrus.md"
    assert bob.run("add", quiet).code == 0
    assert [row["source"] for row in rows(bob, "--source", quiet)] == [
        f"Bob%20%2F%20Co@den:{quiet}",
    ]
    assert bob.run("show", quiet, "--json").json["doc"]["owner"] == "Bob / Co"
    assert alice.run("check").code == bob.run("check").code == 0


def test_what_is_hidden_is_not_there_to_change(owner: Node, alice: Node, bob: Node) -> None:
    """A command that names another's private doc says what it says of an id that never was."""
    mine, ours = add(alice, "Mine"), add(alice, "Ours", "--visibility", "shared")
    nowhere = ("d" + "0123456789abcdef" * 2)[: len(mine)]
    commands = (
        ("rm", "ID", "--yes"),
        ("rm", "SHORT", "--yes"),
        ("visibility", "ID", "public"),
        ("export", "ID"),
        ("show", "ID"),
        ("similar", "ID"),
        ("search", "walrus", "--doc", "ID"),
        ("ls", "--doc", "ID"),
        ("open", "ID", "--print"),
    )
    for command in commands:
        answers: list[Ran] = []
        for ident in (mine, nowhere):
            words = {"ID": ident, "SHORT": ident[:8]}
            answer = bob.run(*(words.get(word, word) for word in command))
            out, err = (
                said.replace(ident, "ID").replace(ident[:8], "ID")
                for said in (answer.out, answer.err)
            )
            answers.append(Ran(code=answer.code, out=out, err=err))
        assert answers[0] == answers[1], command
        assert answers[0].code == 4, command
    # What is seen, and somebody else's, is said to be so.
    for command in (("rm", ours, "--yes"), ("visibility", ours, "private")):
        refused = bob.run(*command)
        assert (refused.code, "belongs to somebody else" in refused.err) == (4, True)
    assert bob.run("rm", "--tag", "ownershared", "--yes").code == 4
    assert seen(bob) == ["Ours", *OPEN_DOCS]
    assert alice.run("visibility", ours, "private").code == 0
    assert alice.run("rm", mine, "--yes").code == 0
    assert (seen(alice), seen(bob)) == (["Ours", *OPEN_DOCS], OPEN_DOCS)
    assert owner.run("rm", ours, "--yes").code == 0
    assert seen(alice) == OPEN_DOCS


def test_a_folder_of_two_roles_on_one_machine(owner: Node, alice: Node, tmp_path: Path) -> None:
    """Each has its own docs of the files, and no sync of one touches those of the other."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("oak", "elm", "ash", "fir", "yew", "box"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe walrus under the {name}.\n")
    assert owner.run("add", folder, "--json").json["added"] == 6
    added = alice.run("add", folder, "--json").json
    assert (added["added"], added["unchanged"]) == (6, 0)
    assert [row["source"] for row in rows(alice, "--source", folder, "--limit", 0)] == [
        row["source"] for row in rows(alice) if row["source"].startswith("alice@desk:")
    ]
    (folder / "oak.md").unlink()
    (folder / "ivy.md").write_text("# ivy\n\nThe walrus under the ivy.\n")
    (line,) = alice.run("sync-all", "--interval-min", 0, "--json").json["sources"]
    assert line["location"] == f"alice@desk:{folder}"
    assert (line["added"], line["removed"]) == (1, 1)
    places = [row["source"] for row in rows(owner, "--limit", 0)]
    assert f"{folder}/oak.md" in places
    assert f"alice@desk:{folder}/oak.md" not in places
    assert [hit["freshness"] for hit in alice.hits("under the ivy")[:1]] == ["fresh"]
    assert "ivy" in alice.run("show", folder / "ivy.md").out
    # What it is called for others is a name for it, too.
    named = f"alice@desk:{folder}/ivy.md"
    assert "under the ivy" in owner.run("show", named).out
    assert [row["source"] for row in rows(owner, "--source", named)] == [named]
    assert owner.run("open", named, "--print").code == 4
    # Sources are each one's own, too.
    locations = [row["location"] for row in alice.run("sources", "--json").json["sources"]]
    assert locations == [str(folder)]
    quiet = tmp_path / "quiet"
    for words in (("sources", "rm", quiet), ("sync-all", "--source", quiet)):
        hidden, never = alice.run(*words), alice.run(*words[:-1], "/never")
        assert (hidden.code, hidden.err.replace(str(quiet), "/never")) == (4, never.err)
    (line,) = (
        row
        for row in owner.run("sync-all", "--interval-min", 0, "--json").json["sources"]
        if row["location"] == str(folder)
    )
    assert (line["added"], line["removed"]) == (1, 1)
    assert alice.run("check").code == 0


def test_who_may_only_read(owner: Node, postgres: PostgresServer, tmp_path: Path) -> None:
    """A role with the right to read finds what it sees, and writes nothing."""
    home = postgres.home_as("rita", owner.home, rights="read")
    rita = Node(tmp_path / "rita", home, KB_MACHINE="desk")
    assert seen(rita) == OPEN_DOCS
    for words in (("add", tmp_path / "quiet"), ("rm", ids(rita)["Owner public"], "--yes")):
        assert rita.run(*words).code in (1, 4)
    assert seen(owner) == ["Owner private", *OPEN_DOCS]


def test_what_is_the_owners(
    owner: Node, alice: Node, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Tokens, packs and the whole notebook are for the owner, and for who is a member of it."""
    commands = (
        ("token", "add", "laptop", "--user", "owner"),
        ("token", "ls"),
        ("token", "rm", "laptop"),
        ("note", "tidy"),
        ("note", "push", "--yes"),
        ("registry", "add", "r", "https://entries.example.org"),
        ("mcp", "--user", "local"),
        ("config", "set", "content.bucket", "s3://alices"),
    )
    for command in commands:
        refused = alice.run(*command)
        assert refused.code == 1, (command, refused)
        assert "is for the owner of the home, and the role alice is not it" in refused.err
    home = postgres.home_as("carol", owner.home)
    postgres.run_sql("GRANT kb TO carol WITH INHERIT FALSE, SET FALSE")
    carol = Node(tmp_path / "carol", home, KB_MACHINE="desk")
    assert seen(carol) == ["Owner private", *OPEN_DOCS]
    assert carol.run("token", "ls").code == 0
    # Its docs are those of the home's owner, whose machine it is.
    add(carol, "Common")
    shown = owner.run("show", ids(owner)["Common"], "--json").json["doc"]
    assert shown["owner"] == "local"


def test_a_role_that_would_be_the_owner_by_name(
    owner: Node, postgres: PostgresServer, tmp_path: Path
) -> None:
    """The owner's docs are the user `local`'s, so no role of that name is let in."""
    local = Node(tmp_path / "local", postgres.home_as("local", owner.home), KB_MACHINE="desk")
    refused = local.run("search", "walrus")
    assert (refused.code, refused.out) == (2, "")
    assert "the role local can be no user of a home" in refused.err


@pytest.fixture
def crowd(owner: Node, alice: Node) -> Node:
    """A home in which work on a private doc of the owner's has failed and waits."""
    add(alice, "Mine")
    done = owner.run("note", "add", "--wait", "# Owner private\n\nA walrus of xylem and hush.\n")
    assert done.code == 0, done.err
    big = owner.folder.parent / "quiet" / "xylem.pdf"
    big.write_bytes(b"%PDF-1.4 hush\n")
    assert owner.run("add", big).code == 3
    text = "# Owner private\n\nhush, xylem\n"
    assert owner.run("add", "-", "--no-wait", stdin=text).code == 0
    return alice


READS: dict[str, tuple[tuple[object, ...], ...]] = {
    "search": (("walrus",), ("hush", "--json"), ("#hush", "--explain"), ("tag:hush walrus",)),
    "ask": (("what does the walrus say?",), ("hush?", "--json")),
    "similar": (("OWN",),),
    "facets": ((), ("--json",)),
    "ls": ((), ("--json",), ("--status", "all"), ("--status", "tombstoned"), ("--tag", "hush")),
    "show": (("OWN",), ("PLACE",), ("OWN", "--json")),
    "open": (("PLACE", "--print"),),
    "export": (("OWN",), ("PLACE",)),
    "entities": ((), ("hush",), ("--json",)),
    "growth": ((), ("--json",)),
    "sync-all": (("--interval-min", 0), ("--interval-min", 0, "--dry-run", "--json")),
    "sources": ((), ("--json",)),
    "job": (("ls",), ("ls", "--json")),
    "stats": ((), ("--json",)),
    "learn": ((),),
    "prompt": ((),),
    "guide": (("how to keep a walrus",),),
    "entries": ((), ("--json",)),
    "signals": ((), ("--json",)),
    "note": (("log",), ("get", "INDEX.md")),
    "pack": (("ls",), ("ls", "--json")),
    "check": ((), ("--json",)),
    "doctor": ((), ("--json",)),
    "compact": ((), ("--json",)),
    "eval": (("--gathered",),),
    "embedder": ((), ("--json",)),
    "token": (("ls",),),
    "registry": (("ls",),),
    "worker": (("--drain",),),
    "rm": (("PLACE", "--yes"), ("--tag", "hush", "--yes")),
    "visibility": (("PLACE", "public"),),
    "backup": (("create",), ("list",)),
}
NO_DOCS = {
    *("init", "add", "watch", "mcp", "new", "serve", "pull", "sync-knowledge", "migrate"),
    *("trust", "config", "completion"),
}
"""Commands that show no doc that is there already, or go on for ever; `mcp` and `serve` have
tests of their own."""


def test_no_command_tells_of_what_is_hidden(crowd: Node) -> None:
    """Whatever a role asks, no word, title or place of another's private docs comes back."""
    assert {*READS, *NO_DOCS} == {*COMMANDS}
    own = ids(crowd)["Mine"]
    place = crowd.folder.parent / "quiet" / "walrus.md"
    for name, calls in READS.items():
        for call in calls:
            words = [{"OWN": own, "PLACE": place}.get(str(word), word) for word in call]
            answer = crowd.run(name, *words)
            said = answer.out + answer.err
            for asked in (*map(str, words), "walrus"):
                said = said.replace(asked, "")
            # What was asked for may be repeated, but not told.
            secrets = SECRETS if "hush" in "".join(map(str, words)) else (*SECRETS, "hush")
            told = [secret for secret in secrets if secret in said]
            assert told == [], (name, words, said)
            assert "Traceback" not in said


def test_a_token_of_a_users_and_a_role_of_its_name(owner: Node, alice: Node) -> None:
    """They are one owner: each sees what the other has added."""
    token = owner.run("token", "add", "laptop", "--user", "alice", "--role", "writer").out.split()[
        -1
    ]
    mine = add(alice, "Mine")
    with serving(owner, env=dict(owner.env)) as server:
        listed = server.get("/v1/docs", token).json["docs"]
        assert sorted(row["title"] for row in listed) == ["Mine", *OPEN_DOCS]
        sent = {"text": "# Sent\n\nA walrus by post.\n", "title": "Sent"}
        assert server.post("/v1/docs", sent, token).status == 200
        assert server.post(f"/v1/docs/{mine}/remove", b"", token).status == 200
    assert owner.run("worker", "--drain").code == 0
    assert seen(alice) == ["Owner public", "Owner shared", "Sent"]


def test_a_server_of_a_role(owner: Node, alice: Node) -> None:
    """Who starts a server asks it as their role does, and by its socket only as that role."""
    add(alice, "Mine")
    by_name = Node(alice.folder, alice.home.replace("alice@", ""), KB_MACHINE="desk")
    env = {**by_name.env, "PGUSER": "alice"}
    with serving(by_name, "--no-token", env=env) as server:
        me = server.get("/v1/me").json
        assert me == {"user": "alice", "role": "writer"}
        listed = server.get("/v1/docs").json["docs"]
        assert sorted(row["title"] for row in listed) == ["Mine", *OPEN_DOCS]
        assert server.get("/v1/stats").status == 403
        assert server.get("/v1/search?q=hush").json["hits"][0]["title"] != "Owner private"
        # The same folder of caches, the same socket, and another role.
        for user, found in (("alice", False), ("kb", True)):
            argv = by_name.argv("search", "hush", "--json")
            hits = forked(argv, {**by_name.env, "PGUSER": user})
            assert any(hit["title"] == "Owner private" for hit in hits) is found


def forked(argv: list[str], env: dict[str, str]) -> list[dict[str, str]]:
    from commands import run

    done = run(argv, env=env)
    assert done.code == 0, done.err
    hits: list[dict[str, str]] = done.json["hits"]
    return hits


def test_an_agent_of_a_role(owner: Node, alice: Node, tmp_path: Path) -> None:
    """`kb mcp` answers and adds as the role that started it."""

    async def story(client: Client) -> None:
        found = await client.call_tool("kb_search", {"query": "walrus hush"})
        assert "hush." not in text_of(found)
        added = await client.call_tool("kb_add", {"text": "# Agent\n\nA walrus.", "title": "Agent"})
        assert '"indexed":true' in text_of(added).replace(" ", "")

    by_stdio(alice.argv("mcp", "--write"), story, tmp_path / "err", env=dict(alice.env))
    assert seen(alice) == ["Agent", *OPEN_DOCS]
    shown = owner.run("show", ids(owner)["Agent"], "--json").json["doc"]
    assert (shown["owner"], shown["visibility"]) == ("alice", "private")


def test_the_library_and_topics_of_a_role(
    owner: Node, alice: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kb.open` is the role's; a topic of its settings is its own, also where the owner has one."""
    folder = tmp_path / "topic"
    folder.mkdir()
    (folder / "tides.md").write_text("# Tides\n\nThe walrus waits for the tide.\n")
    for node in (owner, alice):
        config = node.folder / "config" / "kb" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[kb.topic.sea]\nsubjects = "{folder}"\nindex = true\n')
        synced = node.run("sync-all", "--interval-min", 0)
        assert synced.code == 0, synced.err
    topics = [row for row in rows(owner, "--limit", 0) if row["title"] == "Tides"]
    assert len({row["doc_id"] for row in topics}) == 2
    assert seen(alice) == [*OPEN_DOCS, "Tides"]
    for name, value in alice.env.items():
        if name.startswith(("XDG_", "KB_")):
            monkeypatch.setenv(name, value)
    with kb.open(alice.home, settings={"embed.kind": "hashing"}) as home:
        added = home.add(text="# Library\n\nA walrus reads.\n", title="Library")
        assert sorted(doc.title for doc in home.list()) == ["Library", *OPEN_DOCS, "Tides"]
        assert {hit.title for hit in home.search("walrus hush")} == {
            *("Library", *OPEN_DOCS, "Tides"),
        }
        assert [doc.title for doc in home.docs()] == [*OPEN_DOCS, "Tides", "Library"]
        public = ids(owner)["Owner public"]
        with pytest.raises(NotYours):
            home.remove(public)
        assert home.remove(added.docs[0].doc_id).removed == [added.docs[0].doc_id]


def test_notes_are_each_ones_own(owner: Node, alice: Node, bob: Node) -> None:
    """A note is its role's doc; others read neither it nor what the log says of it."""
    placed = alice.run("note", "add", "--wait", "--json", "# Mine\n\nA walrus, hush.\n")
    assert placed.code == 0, placed.err
    path, job = placed.json["path"], placed.json["job_id"]
    assert "hush" in alice.run("note", "get", path).out
    for words in (("note", "get", path), ("job", job), ("job", "retry", job)):
        assert bob.run(*words).code == 4
    assert (path in alice.run("note", "log").out, "ine" in bob.run("note", "log").out) == (
        True,
        False,
    )
    assert owner.run("note", "get", path).code == 0


def test_rights_that_change_count_for_the_next_command(
    owner: Node, alice: Node, postgres: PostgresServer
) -> None:
    """Who becomes a member of the owner is the operator, and is none any more when that ends."""
    mine = add(alice, "Mine")
    postgres.run_sql("GRANT kb TO alice")
    try:
        assert seen(alice) == ["Mine", "Owner private", *OPEN_DOCS]
    finally:
        postgres.run_sql("REVOKE kb FROM alice")
    assert ids(alice)["Mine"] == mine
    assert seen(alice) == ["Mine", *OPEN_DOCS]
    schema = database_address(owner.home).schema
    postgres.run_sql(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM alice")
    assert alice.run("search", "walrus").code == 1
    assert json.dumps(os.listdir(alice.local)).count("home-id") == 1
