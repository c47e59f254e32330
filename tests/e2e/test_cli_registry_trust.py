"""Registries that lie, break off or are not signed: what is wrong is refused, the rest goes on."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crash_rig import assert_one_clear_line
from loopback import Answer, LoopbackServer, in_chunks, serving
from registry_host import Publisher, Reader, line_of, published

ENDLESS = (b"x" * 65_536 for _ in itertools.repeat(0))


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return published(tmp_path)


@pytest.fixture
def reader(tmp_path: Path, publisher: Publisher, server: LoopbackServer) -> Reader:
    """A home that knows the registry and has pulled nothing yet."""
    made = Reader(tmp_path / "reader")
    made.follow("team", publisher.served_by(server))
    return made


def test_an_index_that_the_key_has_not_signed_is_refused(
    tmp_path: Path, publisher: Publisher, server: LoopbackServer
) -> None:
    """Unsigned, signed by another key, or changed since: nothing is written."""
    keys = {}
    for name in ("right", "wrong"):
        keys[name] = publisher.rig.call("pack", "keygen", tmp_path / name).out.strip()
    reader = Reader(tmp_path / "reader")
    reader.follow("team", publisher.served_by(server), "--trust", keys["right"])

    def refused() -> None:
        said = reader.call("sync-knowledge")
        assert (said.code, "team: its index is not signed" in said.err) == (1, True)
        assert list(reader.knowledge.iterdir()) == []
        assert not (reader.home / "index" / "registries").exists()

    refused()
    publisher.publish("--key", tmp_path / "wrong")
    refused()
    assert publisher.publish("--key", tmp_path / "right")["signed_by"] == keys["right"]
    index = publisher.to / "index.json"
    signed = index.read_bytes()
    index.write_bytes(signed.replace(b"About boats", b"About goats"))
    refused()
    index.write_bytes(signed)
    assert reader.sync()["new"] == 3
    publisher.write("oars")
    publisher.publish()
    assert not (publisher.to / "index.sig").exists()
    assert reader.call("sync-knowledge").code == 1
    assert not (reader.knowledge / "oars.md").exists()


@pytest.mark.parametrize(
    ("path", "route", "said"),
    [
        (
            "/entries/boats.md",
            Answer(b"---\nzettel_id: boats\n---\n"),
            "its content does not match",
        ),
        ("/entries/boats.md", in_chunks(ENDLESS, {}), "it is over"),
        ("/vectors/{set}/boats.bin", Answer(b"{}"), "its content does not match"),
        ("/entries/boats.md", Answer(b"", 404), "404"),
    ],
)
def test_a_lie_costs_its_own_entry_only(
    reader: Reader,
    publisher: Publisher,
    server: LoopbackServer,
    path: str,
    route: Any,
    said: str,
) -> None:
    """A wrong hash, an endless stream, other vectors, a file that is not there."""
    (vectors,) = json.loads(publisher.files()["index.json"])["fingerprints"]
    server.routes[path.format(set=vectors)] = route
    report = reader.sync(code=3)
    assert reader.counts(report) == {"new": 2, "failed": 1}
    assert said in line_of(report, "boats")["reason"]
    assert not (reader.knowledge / "boats.md").exists()
    server.routes.clear()
    assert reader.counts(reader.sync()) == {"new": 1, "unchanged": 2}
    reader.check()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"{", 200, {"Content-Length": str(1 << 30)}), "over the limit of"),
        (Answer(b'{"schema_version": 9}'), "its index has format 9"),
        (Answer(b"[" * 100_000), "its index cannot be read"),
        (Answer(b"", 503), "the server failed (503)"),
    ],
)
def test_an_index_that_is_none_is_refused(
    reader: Reader, server: LoopbackServer, answer: Answer, said: str
) -> None:
    """Too large, of another form, no JSON, or not there: exit 1, one line, nothing written."""
    server.routes["/index.json"] = answer
    ran = reader.call("sync-knowledge")
    assert (ran.code, said in ran.err, list(reader.knowledge.iterdir())) == (1, True, [])
    assert_one_clear_line(ran)
