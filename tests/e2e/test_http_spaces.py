"""`kb serve` in a project's folder: whoever is there reads every space, a token one alone."""

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from commands import run
from http_server import Got, Running, until
from packs_folder import doc, pack_of
from person import Person

from kb.model.token import ROLES
from kb.serve.http_server import all_routes
from kb.store.content.layout import HomePaths

# In whatever the user's space holds, and in nothing else.
MARK: Final = b"walrus"
ENTRY: Final = """\
---
zettel_id: walrus-watch
title: Watching a walrus
use_when: [how do I watch a walrus]
---
Stay on the boat, and keep the walrus downwind.
"""
ACCEPT: Final = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """A note in each store and a file that both have; of the user's own all that is public."""
    person = Person(tmp_path_factory.mktemp("http-spaces"))
    person.project_home.mkdir(parents=True)
    for name, text in {
        "boats": "The harbour of boats in #summer.",
        "both": "The harbour of both.",
        "rope": "The harbour of the walrus has rope. #walrus",
    }.items():
        (person.project / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    assert person.kb("add", "boats.md", "both.md").code == 0
    public = ("--visibility", "public")
    pack_of(person.root / "tusks", doc("walrus", summary="A walrus."), pack_id="walrus-pack")
    for args in (
        ("add", "rope.md", "both.md", *public),
        ("pack", "add", person.root / "tusks", *public),
        ("note", "add", "# Walrus\n\nA walrus sleeps.", "--wait"),
    ):
        ran = person.kb("--space", "user", *args)
        assert ran.code == 0, ran.err
    (person.user_home / "knowledge").mkdir(exist_ok=True)
    (person.user_home / "knowledge" / "walrus.md").write_text(ENTRY)
    assert person.kb("--space", "user", "sync-all", "--interval-min", "0").code == 0
    (person.user_home / "ways").mkdir()
    (person.user_home / "ways" / "walrus.md").write_text("A walrus is met in the north.\n")
    (person.user_home / "kb.toml").write_text('[kb.topic.walrus]\nsubjects = "ways"\n')
    person.ids = {row["title"]: row["doc_id"] for row in person.kb("ls", "--json").json["docs"]}
    return person


@pytest.fixture(scope="module")
def server(person: Person) -> Iterator[Running]:
    with person.serving() as running:
        yield running


def copied(person: Person, place: Path) -> Person:
    """The same in another place, to do with as a test likes."""
    shutil.copytree(person.root, place, ignore=shutil.ignore_patterns("*.sock*"))
    copy = Person(place)
    copy.trust()
    copy.ids = person.ids
    return copy


def titles(got: Got) -> set[tuple[str, str]]:
    assert got.status == 200, got.body
    return {(row["title"], row["space"]) for row in got.json["docs"]}


def test_the_person_there_reads_both(person: Person, server: Running) -> None:
    """Hits are those of `kb search`, docs those of `kb ls`, each says whose it is and is read."""
    searched = person.kb("search", "harbour", "-k", "20", "--json").json
    found = server.get("/v1/search?q=harbour&k=20&marks=true").json
    for field in ("doc_id", "source_space", "rank", "score"):
        assert [hit[field] for hit in found["hits"]] == [hit[field] for hit in searched["hits"]]
    assert {hit["source_space"] for hit in found["hits"]} == {"project", "user"}
    assert found["spaces"] == ["project", "user"]
    listed = server.get("/v1/docs?limit=200")
    rows = person.kb("ls", "--json", "--limit", "0").json["docs"]
    # The page lists what agents are told of, once; the command lists a source of both twice.
    assert titles(listed) == {(row["title"], row["space"]) for row in rows} - {("Both", "user")}
    assert listed.json["spaces"] == ["project", "user"]
    for title, space in (("Boats", "project"), ("Rope", "user")):
        text = server.get(f"/v1/docs/{person.ids[title]}").json
        assert (text["title"], text["space"], text["spaces"]) == (title, space, found["spaces"])
    answer = server.get("/content?query=Where+does+a+walrus+sleep%3F").json
    assert answer["found"] is True
    assert "A walrus sleeps." in answer["answer"]


def test_one_space_is_named(person: Person, server: Running) -> None:
    """`space` narrows hits, docs and texts to one; `all` is what goes without saying."""
    both = titles(server.get("/v1/docs"))
    assert titles(server.get("/v1/docs?space=all")) == both
    assert titles(server.get("/v1/docs?space=project")) == {
        ("Boats", "project"),
        ("Both", "project"),
    }
    user = server.get("/v1/docs?space=user")
    assert {("Both", "user"), ("Rope", "user")} <= titles(user)
    assert {space for _, space in titles(user)} == {"user"}
    assert user.json["spaces"] == ["project", "user"]
    for space in ("project", "user"):
        hits = server.get(f"/v1/search?q=harbour&space={space}").json["hits"]
        assert {hit["source_space"] for hit in hits} == {space}
        there = server.get(f"/v1/docs/{person.ids['Both']}?space={space}").json
        assert (there["title"], there["space"]) == ("Both", space)
    assert server.get(f"/v1/docs/{person.ids['Boats']}?space=user").status == 404
    assert server.get("/v1/entities?prefix=%23&space=project").body.count(MARK) == 0
    assert server.get("/v1/docs?space=home").json["field"] == "space"


def test_a_change_of_the_other_home_is_seen(person: Person, server: Running) -> None:
    """What is added to it, and removed from it, by a command beside the server."""

    def found() -> list[str]:
        hits = server.get("/v1/search?q=zebra&mode=lexical").json["hits"]
        return [hit["source_space"] for hit in hits]

    assert found() == []
    (person.project / "zebra.md").write_text("# Zebra\n\nA zebra.\n")
    assert person.kb("--space", "user", "add", "zebra.md").code == 0
    assert found() == found() == ["user"]
    (row,) = (one for one in server.get("/v1/docs").json["docs"] if one["title"] == "Zebra")
    assert person.kb("--space", "user", "rm", row["doc_id"], "--yes").code == 0
    assert found() == []


def test_what_is_not_read_goes_to_its_own_home(person: Person, tmp_path: Path) -> None:
    """Docs come into it and are removed from it; counts, notes and commands are of it alone."""
    copy = copied(person, tmp_path / "copy")
    with copy.serving() as server:
        assert server.post("/v1/docs", {"text": "Oars.", "title": "Oars"}).status == 200
        rope = copy.ids["Rope"]
        assert server.ask("POST", f"/v1/docs/{rope}/remove").status == 404
        assert server.get(f"/v1/docs/{rope}").status == 200
        assert server.ask("POST", f"/v1/docs/{copy.ids['Boats']}/remove").status == 200
        until(lambda: titles(server.get("/v1/docs?space=project")) and indexed(server))
        assert titles(server.get("/v1/docs?space=project")) == {
            ("Both", "project"),
            ("Oars", "project"),
        }
        assert server.get("/v1/stats").json["docs"] == {"active": 2, "tombstoned": 1}
        assert server.get("/v1/notes").json["total"] == 0
        asked = {"query": "harbour oars walrus"}
        (alone,) = {hit["source_space"] for hit in server.post("/v1/search", asked).json["hits"]}
        assert alone == "project"
        assert server.stop()[0] == 0
    listed = copy.kb("--space", "user", "ls", "--json").json["docs"]
    assert {"Rope", "Both"} <= {row["title"] for row in listed}
    assert "Oars" not in {row["title"] for row in listed}


def indexed(server: Running) -> bool:
    return all(row["indexed"] for row in server.get("/v1/docs").json["docs"])


def test_a_command_beside_it_prints_the_same(person: Person, server: Running) -> None:
    """Of both spaces, which no server answers, and of one, which this one does by its socket."""
    for space in ((), ("--space", "project"), ("--space", "user")):
        argv = (*space, "search", "harbour", "--json")
        # With --verbose the homes are read by the command itself.
        assert person.kb(*argv).out == person.kb("-v", *argv).out
    counted = server.get("/metrics").body
    assert b'route="/v1/search",method="POST",status="200"' in counted


def test_the_person_there_has_answers_of_their_own(person: Person, server: Running) -> None:
    """The same address, asked by the socket and by a token in turn, tells each what is theirs."""
    secret = person.kb("token", "add", "local").out.strip()
    for address in ("/v1/search?q=harbour&k=7", "/v1/docs?limit=7"):
        for _ in range(3):
            by_token, by_socket = server.get(address, secret), by_own(person, address)
            assert (by_token.status, MARK in by_token.body) == (200, False)
            assert by_socket.startswith(b"HTTP/1.1 200 ")
            assert MARK in by_socket
    assert person.kb("token", "rm", "local").code == 0


def by_own(person: Person, address: str) -> bytes:
    """What the socket in the home answers, with its head."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(HomePaths(person.project_home).socket))
        head = f"GET {address} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        peer.sendall(head.encode())
        return b"".join(iter(lambda: peer.recv(65_536), b""))


def test_the_servers_own_home_leads(person: Person, tmp_path: Path) -> None:
    """It is made where it is not there; where it cannot be opened no other takes its place."""
    copy = copied(person, tmp_path / "copy")
    shutil.rmtree(copy.project_home)
    copy.project_home.mkdir()
    with copy.serving() as server:
        assert server.get("/v1/docs?space=project").json["docs"] == []
        assert ("Rope", "user") in titles(server.get("/v1/docs"))
        assert server.stop()[0] == 0
    (copy.project_home / "store" / "data.mdb").write_bytes(b"no store" * 1_000)
    ran = run(copy.argv("serve", "--port", "0"), env=copy.env, cwd=copy.project)
    assert (ran.code, ran.out) == (5, "")


def test_a_home_that_cannot_be_opened_is_left_out(person: Person, tmp_path: Path) -> None:
    """The person there is warned as by the commands, and cannot name it; the rest is read."""
    copy = damaged(person, tmp_path / "copy")
    warned = copy.kb("search", "harbour", "--json").json["warnings"]
    with copy.serving() as server:
        found = server.get("/v1/search?q=harbour&marks=true").json
        assert found["warnings"] == warned
        assert "the user space is left out" in warned[0]
        assert {hit["source_space"] for hit in found["hits"]} == {"project"}
        assert found["spaces"] == ["project"]
        assert server.get("/v1/docs?space=user").status == 400


def damaged(person: Person, place: Path) -> Person:
    copy = copied(person, place)
    (copy.user_home / "store" / "data.mdb").write_bytes(b"no store" * 1_000)
    return copy


def asks(person: Person, passages: list[str]) -> list[tuple[str, Any]]:
    """An address and what is sent there, for every route that reads: what each space would tell."""
    own, other = person.ids["Boats"], person.ids["Rope"]
    source = f"/v1/search?q=harbour&source={person.project}"
    return [
        *((address, None) for address in (source, *addresses(own, other, passages))),
        *bodies(own, other),
        (f"/v1/docs/{other}/remove", b""),
        ("/v1/jobs/j1/retry", b""),
    ]


def addresses(own: str, other: str, passages: list[str]) -> list[str]:
    """What is asked by address, of a doc of each space."""
    named = [
        f"{path}{mark}space={space}"
        for path, mark in (
            ("/v1/search?q=harbour+walrus", "&"),
            ("/v1/search?q=harbour+walrus&marks=true", "&"),
            *((f"/v1/docs{rest}", "?") for rest in ("", f"/{own}", f"/{other}", "/walrus-watch")),
            *((f"/v1/passages/{one}", "?") for one in passages),
            *((f"/v1/similar/{one}", "?") for one in (own, other)),
            ("/v1/entities?prefix=", "&"),
            *((f"/v1/{name}", "?") for name in ("facets", "growth")),
            ("/v1/packs", "?"),
            ("/v1/packs?pack=walrus-pack", "&"),
        )
        for space in ("all", "project", "user")
    ]
    limits = (f"doc={other}", "pack=walrus-pack", "require=%23walrus")
    return [
        *named,
        *(f"/v1/search?q=harbour&{limit}" for limit in limits),
        "/v1/guide?q=how+do+I+watch+a+walrus",
        *("/v1/notes", "/v1/topics", "/v1/sources", "/v1/stats", "/v1/jobs", "/metrics"),
        *("/v1/notes/log", "/v1/jobs/j1", "/v1/me"),
        *(f"/v1/events?doc={one}" for one in (own, other)),
        *(f"/content?{asked}" for asked in ("path=walrus.md", "query=What+has+the+walrus%3F")),
        "/content?query=walrus&mode=raw",
        *("/jobs/j1", "/health/live", "/health/ready", "/openapi.json", "/", "/page/app.js"),
    ]


def bodies(own: str, other: str) -> list[tuple[str, Any]]:
    """What is asked by a body."""
    question = {"question": "What has the walrus?", "k": 5, "max_tokens": 1_000}
    tools: dict[str, list[dict[str, Any]]] = {
        "kb_search": [{"query": "harbour walrus"}],
        "kb_ask": [{"question": "What has the walrus?"}],
        "kb_fetch": [{"id": own}, {"id": other}, {"id": "walrus-watch"}],
        "kb_list_docs": [{}],
        "kb_similar": [{"id": own}, {"id": other}],
        "kb_search_entities": [{"prefix": ""}],
        "kb_pack_list": [{}, {"pack": "walrus-pack"}],
        "kb_pack_read": [{"pack": "walrus-pack", "doc": "walrus"}],
        "kb_pack_search": [{"pack": "walrus-pack", "query": "tusk"}],
        "kb_pack_neighbors": [{"pack": "walrus-pack", "doc": "walrus"}],
        "learn": [{"topic": "walrus"}, {"topic": "walrus", "subjects": "*"}],
        "help": [{"action": "guidance", "query": "how do I watch a walrus"}],
    }
    calls = [(name, body) for name, bodies in tools.items() for body in bodies]
    commands = {
        "search": [{"query": "harbour walrus"}],
        "ask": [question],
        "ask-sources": [question],
        "ls": [{}],
        "show": [{"id": own}, {"id": other}],
        "fetch": tools["kb_fetch"],
        "list-docs": [{}],
        "similar": tools["kb_similar"],
        "entities": tools["kb_search_entities"],
        "pack-list": tools["kb_pack_list"],
        "pack-read": tools["kb_pack_read"],
        "pack-search": tools["kb_pack_search"],
        "pack-neighbors": tools["kb_pack_neighbors"],
        "facets": [{}],
        "growth": [{}],
        "topics": [{}],
        "guide": [{"query": "how do I watch a walrus"}],
        "help": tools["help"],
        "learn": tools["learn"],
        "standings": [{"doc_ids": [own, other]}],
    }
    messages = [
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/read", {"uri": f"kb://doc/{other}"}),
        ("resources/read", {"uri": "kb://topic/walrus/walrus"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "knowledge"}),
        *(("tools/call", {"name": name, "arguments": body}) for name, body in calls),
    ]
    return [
        *((f"/v1/tools/{name}", body) for name, body in calls),
        *((f"/v1/{name}", body) for name, bodies in commands.items() for body in bodies),
        *(
            ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            for method, params in messages
        ),
    ]


def answers(server: Running, asked: list[tuple[str, Any]], secret: str | None) -> list[Any]:
    """To each the status and what is said, but for what differs from one request to the next."""
    found = []
    for address, body in asked:
        if body is None:
            got = server.get(address, secret)
        elif body == b"":
            got = server.ask("POST", address, token=secret)
        else:
            got = server.post(address, body, secret, accept=ACCEPT)
        said = got.body
        if got.headers["content-type"] == "application/problem+json":
            said = json.dumps({**got.json, "request_id": ""}).encode()
        if address == "/metrics":
            said = b"".join(row for row in said.splitlines(keepends=True) if b"http" not in row)
        found.append((address, got.status, said))
    return found


def test_a_token_reads_the_servers_own_home_alone(
    person: Person, server: Running, tmp_path: Path
) -> None:
    """Of each role each answer is, byte for byte, that of a server that has the one home alone.

    The token is of the very user whose the other home is, and what is there is public.
    """
    hits = server.get("/v1/search?q=harbour&k=20").json["hits"]
    asked = asks(person, [hit["chunk_id"] for hit in hits])
    routes = {
        (route.method, route.path)
        for route in all_routes()
        for address, body in asked
        if route.method == ("GET" if body is None else "POST")
        and route.ids(address.partition("?")[0]) is not None
    }
    paths = ("/content", "/v1/docs", "/v1/files", "/v1/links", "/v1/questions")
    hands_in = {("POST", path) for path in paths} | {("GET", "/open/{link}")}
    assert routes | hands_in == {(route.method, route.path) for route in all_routes()}
    told = {
        address.partition("?")[0]
        for address, _, said in answers(server, asked, None)
        if MARK in said
    }
    assert {"/v1/search", "/v1/docs", "/v1/packs", "/v1/topics", "/v1/guide", "/content"} <= told
    assert {f"/v1/tools/{name}" for name in ("kb_search", "kb_ask", "learn", "help")} | {
        "/mcp"
    } <= told

    copy = copied(person, tmp_path / "copy")
    secrets = {role: copy.kb("token", "add", role, "--role", role).out.strip() for role in ROLES}
    broken = damaged(copy, tmp_path / "broken")

    def by_role(whose: Person, *options: str) -> dict[str, list[Any]]:
        with whose.serving(*options) as running:
            return {role: answers(running, asked, secret) for role, secret in secrets.items()}

    alone = by_role(copy, "--space", "project")
    assert alone == by_role(copy)
    assert alone == by_role(broken)
