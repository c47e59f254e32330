"""A user's home in a database beside a project's in a folder, by the real command."""

import re
import time
from pathlib import Path

import msgspec
import pytest
from commands import Ran
from cutting_proxy import proxy_before
from http_server import END_S, until
from mcp import Client
from mcp_clients import answer_of, by_stdio
from person import Person
from postgres_server import PostgresServer, running_server

import kb

BOTH: dict[str | None, tuple[str, ...]] = {"project": (), "user": ()}
HARBOUR = "The harbour master paints boats in #summer.\n"


def beside(address: str) -> dict[str, str]:
    """An environment in which the user's home is that one."""
    return {"KB_CFG": f"spaces.user={address}"}


def fill(person: Person, team: str) -> Person:
    """Give a person a user's home in a folder, one in a database like it, and a project."""
    person.project_home.mkdir(parents=True)
    for name in ("boats", "rope", "both"):
        (person.project / f"{name}.md").write_text(f"# {name.title()}\n\n{name} {HARBOUR}")
    person.team = team
    for env in ({}, beside(team)):
        added = person.kb("--space", "user", "add", "rope.md", "both.md", env=env)
        assert added.code == 0, added.err
    assert person.kb("add", "boats.md", "both.md").code == 0
    return person


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Person:
    return fill(Person(tmp_path_factory.mktemp("spaces")), postgres.home())


def answers(person: Person, *args: object) -> tuple[Ran, Ran]:
    """What a command says with the user's home in a folder, and with that in a database.

    When each doc was added is left out.
    """
    each = (person.kb(*args), person.kb(*args, env=beside(person.team)))
    folder, shared = (
        msgspec.structs.replace(
            ran, out=re.sub(r"\d{13}|\d{4}-\d\d-\d\d[T ][\d:.Z]+", "TIME", ran.out)
        )
        for ran in each
    )
    return folder, shared


def test_both_answer_as_two_folders_do(filled: Person) -> None:
    """Whatever is asked, and of whichever spaces, the bytes are those of two folders."""
    rope, boats = (
        filled.ids_of(space)[title] for space, title in (("user", "Rope"), ("project", "Boats"))
    )
    questions = (
        ("search", "harbour"),
        ("search", "rope harbour", "--mode", "lexical", "--explain"),
        ("search", "harbour", "--mode", "dense", "-k", 1),
        ("search", "#summer tag:summer"),
        ("search", "harbour", "--source", "rope.md"),
        ("search", "nothing of all this"),
        ("ask", "what does the harbour master paint?"),
        ("ls",),
        ("ls", "--sort", "title"),
        ("entities", "#"),
        ("facets",),
        ("similar", boats),
        ("show", rope),
        ("show", "rope.md"),
        ("guide", "how is a home looked after?"),
    )
    for question in questions:
        for options in ((), ("--json",), ("--space", "user", "--json")):
            folder, shared = answers(filled, *options[:-1], *question, *options[-1:])
            assert shared == folder, (question, options)


def asked_by_alice(hush: str, seen: str) -> tuple[tuple[str, ...], ...]:
    """Commands that read, some of them about a doc that is hidden."""
    return (
        ("ls",),
        ("ls", "--status", "all"),
        ("entities", "#"),
        ("facets",),
        ("ask", "what is xylem?"),
        ("search", "hush xylem", "--mode", "dense"),
        ("search", "tag:hush x"),
        ("similar", seen),
        ("show", hush),
        ("similar", hush),
        ("search", "xylem", "--doc", hush),
    )


def test_a_role_is_who_asks_in_its_home_alone(postgres: PostgresServer, tmp_path: Path) -> None:
    """Beside a project that is all theirs, a role finds its own docs and what is open to it.

    A file that both have is answered once, though the shared home has it under the role's name.
    """
    owner = Person(tmp_path / "owner")
    owner.project_home.mkdir(parents=True)
    team = postgres.home()
    for name, visibility in (("hush", "private"), ("open", "shared")):
        added = owner.kb(
            "--home",
            team,
            "add",
            "-",
            "--visibility",
            visibility,
            stdin=f"# {name}\n\n{name} xylem #{name}\n",
        )
        assert added.code == 0, added.err
    alice = Person(tmp_path / "alice")
    alice.project_home.mkdir(parents=True)
    env = beside(postgres.home_as("alice", team))
    for name in ("mine", "ours"):
        (alice.project / f"{name}.md").write_text(f"# {name}\n\n{name} xylem #{name}\n")
    assert alice.kb("--space", "user", "add", "mine.md", "ours.md", env=env).code == 0
    (alice.project / "ours.md").write_text("# ours\n\nNow of the project: xylem #ours\n")
    assert alice.kb("add", "ours.md", env=env).code == 0
    hits = alice.kb("search", "xylem", "--json", env=env).json["hits"]
    assert sorted((hit["title"], hit["source_space"]) for hit in hits) == [
        ("mine", "user"),
        ("open", "user"),
        ("ours", "project"),
    ]
    hidden = owner.kb("--home", team, "ls", "--json").json["docs"]
    hush = next(row["doc_id"] for row in hidden if row["title"] == "hush")
    for command in asked_by_alice(hush, hits[0]["doc_id"]):
        ran = alice.kb(*command, "--json", env=env)
        assert "# hush" not in ran.out + ran.err, command
        assert '"hush"' not in ran.out + ran.err, command
        assert (ran.code == 4) == (hush in command), command
    asked = (("search", "xylem mine", "--explain"), ("ask", "what is xylem?"), ("facets",), ("ls",))
    before = [alice.kb(*command, "--json", env=env) for command in asked]
    text = "# Private\n\nxylem xylem mine open #hush #mine\n" * 3
    assert owner.kb("--home", team, "add", "-", stdin=text).code == 0
    assert [alice.kb(*command, "--json", env=env) for command in asked] == before
    listed = alice.kb("ls", "--status", "all", "--json", env=env).json
    assert {row["space"] for row in listed["docs"]} == {"project"}
    assert "to its owner alone" in listed["warnings"][0]
    assert alice.kb("mcp", "--user", "bob", env=env).code == 1


def test_what_names_the_users_home(filled: Person, tmp_path: Path) -> None:
    """A setting of the user's own: an address or a folder; `--home` and KB_HOME mean one home."""
    person, team = filled, filled.team
    config = person.root / "config" / "kb" / "config.toml"
    done = person.kb("config", "set", "spaces.user", team)
    assert done.code == 0, done.err
    try:
        spaces = {space for _, space in person.hits("-k", "9")}
        assert spaces == {"project", "user"}
        (named,) = {
            hit["source_space"]
            for hit in person.kb("--home", team, "search", "harbour", "--json").json["hits"]
        }
        assert named == "user"
        assert {space for _, space in person.hits(env={"KB_HOME": team})} == {"user"}
        assert {space for _, space in person.hits(cwd=person.root)} == {"user"}
        assert person.kb("--space", "user", "stats", "--json").json["home"] == team
        assert person.kb("--space", "all", "search", "harbour", "--json").json["hits"]
        assert person.hits(env=beside(str(tmp_path / "empty"))) != []
        assert {space for _, space in person.hits(env=beside(str(tmp_path / "empty")))} == {
            "project"
        }
        assert {space for _, space in person.hits(env=beside(str(person.user_home)))} == spaces
    finally:
        config.unlink()
    for wrong in ("notes", "mysql://host/db", "postgresql://kb:secret@host/db"):
        for ran in (
            person.kb("config", "set", "spaces.user", wrong),
            person.kb("ls", env=beside(wrong)),
        ):
            assert (ran.code, ran.out) == (2, ""), wrong
            assert "spaces.user" in ran.err
            assert "secret" not in ran.err
    assert not config.exists()
    (person.project_home / "kb.toml").write_text(f'[spaces]\nuser = "{team}"\n')
    try:
        ran = person.kb("search", "harbour")
        assert "spaces.user" in ran.err
        assert not (person.root / ".cache" / "kb" / "homes" / "x").exists()
    finally:
        (person.project_home / "kb.toml").unlink()


def test_a_database_that_is_away_is_left_out(filled: Person, postgres: PostgresServer) -> None:
    """The project's home answers within seconds, and one line says that the other did not."""
    nowhere = "postgresql://kb@127.0.0.1:1/postgres/team"
    denied = postgres.home_by_port("team")
    with proxy_before(f"{postgres.folder}/.s.PGSQL.{postgres.port}") as proxy:
        proxy.hangs = True
        silent = f"postgresql://kb@127.0.0.1:{proxy.port}/postgres/team"
        for address in (nowhere, denied, silent, f"{nowhere}?sslmode=nonsense"):
            start_s = time.monotonic()
            for command in (
                ("search", "harbour"),
                ("ls",),
                ("ask", "what paints the master?"),
                ("facets",),
            ):
                ran = filled.kb(*command, env=beside(address))
                assert ran.code == 0, ran.err
                (line,) = ran.err.splitlines()
                assert line.startswith("kb: the user space is left out: "), line
                assert "Boats" in ran.out or command == ("facets",)
            # Whoever has no other home waits ten seconds, at each command.
            assert time.monotonic() - start_s < 30
            alone = filled.kb("--space", "user", "ls", env=beside(address))
            assert alone.code in (1, 2)
            assert filled.kb("show", "dffffff", env=beside(address)).code == alone.code
            assert filled.kb("add", "boats.md", env=beside(address)).code == 0


Answer = dict[str | None, tuple[str, ...]]
"""The spaces of what was found, each with all that the answer warns of."""


def check_project_alone(answer: Answer) -> None:
    """Check that the other home was left out, in words."""
    ((space, warnings),) = answer.items()
    assert space == "project"
    assert "the user space is left out" in warnings[0]


def test_servers_go_on_without_the_database_and_find_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kb serve`, `kb mcp` and the library, which started before it or were there as it went."""
    with running_server() as server:
        person = fill(Person(tmp_path), server.home("team"))
        person.env |= beside(person.team)
        for name, value in person.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(person.project)
        server.stop()

        async def story(client: Client) -> None:
            async def by_mcp() -> Answer:
                answer = answer_of(await client.call_tool("kb_search", {"query": "harbour"}))
                return {hit["source_space"]: tuple(answer["warnings"]) for hit in answer["hits"]}

            for _ in range(2):
                start_s = time.monotonic()
                for ask in (by_http, by_library):
                    check_project_alone(ask())
                check_project_alone(await by_mcp())
                # Readers wait five seconds for a server that starts again, if they have no other.
                assert time.monotonic() - start_s < 12
                server.start()
                for ask in (by_http, by_library):
                    until(lambda ask=ask: ask() == BOTH)  # type: ignore[misc]
                deadline = time.monotonic() + END_S
                while await by_mcp() != BOTH:
                    assert time.monotonic() < deadline
                server.stop()

        with person.serving() as serving, kb.open(settings={"embed.kind": "hashing"}) as home:

            def by_http() -> Answer:
                answer = serving.get("/v1/search?q=harbour").json
                return {hit["source_space"]: tuple(answer["warnings"]) for hit in answer["hits"]}

            def by_library() -> Answer:
                found = home.search("harbour")
                return {hit.source_space: found.warnings for hit in found.hits}

            argv = person.argv("mcp")
            by_stdio(argv, story, tmp_path / "said.txt", env=person.env, cwd=person.project)
            check_project_alone(by_library())
