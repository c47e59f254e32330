"""A read that shows the token of a write is never answered from a state before it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from http_server import Running, serving, until
from nodes import Node
from postgres_server import PostgresServer, running_server
from stale_reads import StaleReads

LAG_MS = 120


class Nodes(NamedTuple):
    """A server that writes, one that reads, and the database that it reads."""

    writer: Running
    reader: Running
    replica: PostgresServer


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One that writes to a database, and one on another machine that reads a late replica of it."""
    folder = tmp_path_factory.mktemp("nodes")
    with running_server() as primary:
        node = Node(folder / "one", primary.home("team"))
        (folder / "note.md").write_text("# Note\n\nThe first.")
        assert node.run("add", folder / "note.md").code == 0
        with serving(node, env=dict(node.env)) as writer:
            assert "kb-transaction" in writer.get("/v1/docs").headers
            with primary.replica(LAG_MS) as replica:
                other = Node(folder / "two", replica.home("team"))
                with serving(other, "--workers", "0", env=dict(other.env)) as reader:
                    yield Nodes(writer, reader, replica)


def test_no_read_with_a_token_is_stale(servers: Nodes) -> None:
    """On a replica that is late each read waits; without the token it would be told the past."""
    writer, reader, _ = servers
    told = StaleReads(writer, reader, with_token=True, name="alder")
    untold = StaleReads(writer, reader, with_token=False, name="birch")
    for number in range(4):
        told.round(number)
        untold.round(number)
    assert told.reads == 24
    assert (told.stale.total(), told.refused.total()) == (0, 0), (told.stale, told.refused)
    assert untold.stale.total() > 0
    added = writer.post("/v1/docs", {"text": "# Oak\n\nOak.", "title": "Oak"})
    assert reader.get("/v1/search?q=oak", kb_at_least=added.headers["kb-transaction"]).status == 200
    until(lambda: writer.get("/v1/search?q=oak").json["hits"])
    until(lambda: writer.get("/health/ready").json == {"behind": 0, "status": "ok"})


def test_what_never_comes_is_not_waited_for(servers: Nodes) -> None:
    """No token of this home is a bad request; one that does not come in time is told so."""
    writer, reader, _ = servers
    for token in ("nonsense", "A" * 32, "é"):
        got = reader.get("/v1/docs", kb_at_least=token.encode().decode("latin-1"))
        assert (got.status, got.json["code"]) == (400, "no_such_transaction")
    assert reader.get("/v1/search?q=note&at_least=nonsense").status == 422
    with_field = writer.post("/v1/docs", {"text": "# Elm\n\nElm.", "title": "Elm"}).json
    path = f"/v1/search?q=first&at_least={with_field['transaction']}"
    assert reader.get(path).json["hits"][0]["title"] == "Note"


def test_a_replica_that_has_stopped_says_so(servers: Nodes) -> None:
    """503 with Retry-After after a bounded wait, and answers without a token as before."""
    writer, reader, replica = servers
    replica.run_sql("SELECT pg_wal_replay_pause()")
    added = writer.post("/v1/docs", {"text": "# Ash\n\nAsh.", "title": "Ash"})
    token = added.headers["kb-transaction"]
    late = reader.get("/v1/docs", kb_at_least=token)
    assert (late.status, late.json["code"], late.headers["retry-after"]) == (503, "behind", "1")
    assert reader.get("/v1/docs").status == 200
    replica.run_sql("SELECT pg_wal_replay_resume()")
    assert reader.get(f"/v1/docs/{added.json['doc_id']}", kb_at_least=token).status == 200


def test_commands_and_programs_have_it_too(postgres: PostgresServer, tmp_path: Path) -> None:
    """`--json` says the token of a write, and a search takes it, on another machine as well."""
    home = postgres.home()
    one, two = (Node(tmp_path / name, home) for name in ("one", "two"))
    (tmp_path / "note.md").write_text("# Larch\n\nIt sheds its needles.")
    added = one.run("add", tmp_path / "note.md", "--json").json
    search = ("search", "needles", "--json", "--at-least")
    assert two.run(*search, added["transaction"]).json["hits"][0]["title"] == "Larch"
    (doc,) = added["docs"]
    removed = one.run("rm", doc["doc_id"], "--yes", "--json").json
    assert two.run(*search, removed["transaction"]).json["hits"] == []
    wrong = two.run(*search, "nonsense")
    assert wrong.code == 2
    assert "at_least takes the `transaction`" in wrong.err
