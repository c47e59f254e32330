"""`kb doctor` on a home in a database: a line on the server, and what to mend there."""

from pathlib import Path

from nodes import Node
from postgres_server import PostgresServer

from kb.store.content.database import database_address


def test_doctor_speaks_of_the_server(postgres: PostgresServer, tmp_path: Path) -> None:
    """Version, round trip, connections, rights and what a crash would lose."""
    node = Node(tmp_path / "one", postgres.home())
    (tmp_path / "a.md").write_text("# A\n\nWords.\n")
    assert node.run("add", tmp_path / "a.md").code == 0
    schema = database_address(node.home).schema
    health = node.run("doctor", "--json").json
    server = health["server"]
    assert (server["major"], server["may_write"], server["is_replica"]) == (18, True, False)
    assert 0 < server["connections"] <= server["connections_max"]
    # The tests' server does not sync its files.
    (advice,) = [row for row in health["findings"] if row["place"] == "server"]
    assert "fsync is off" in advice["problem"]
    postgres.run_sql("CREATE ROLE doctor_reader LOGIN")
    postgres.run_sql(f"GRANT USAGE ON SCHEMA {schema} TO doctor_reader")
    postgres.run_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO doctor_reader")
    reader = Node(tmp_path / "two", postgres.home(schema, user="doctor_reader"))
    said = reader.run("doctor")
    assert said.code == 3
    assert "server: PostgreSQL 18" in said.out
    assert "this user may only read" in said.out
    folder = Node(tmp_path / "three", str(tmp_path / "home"))
    assert folder.run("doctor", "--json").json["server"] is None
