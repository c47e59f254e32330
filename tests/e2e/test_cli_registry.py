"""Registries as a publisher and a reader meet them, over a real server on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_rig import ended
from loopback import Answer, LoopbackServer, serving
from registry_host import Publisher, Reader, entry_text, line_of, published

from kb.intake.embed.hashing import HashingEmbedder


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


def fresh(server: LoopbackServer) -> list[str]:
    """The paths asked for since the last look."""
    paths = server.paths()
    server.requests.clear()
    return paths


def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on any text that is cut or embedded fails the command."""

    def fail(*_: object) -> None:
        raise AssertionError("the model was asked")

    for name in ("embed_documents", "embed_query", "token_spans", "token_spans_batch"):
        monkeypatch.setattr(HashingEmbedder, name, fail)


def test_what_is_published_is_pulled_and_found(
    tmp_path: Path, publisher: Publisher, server: LoopbackServer
) -> None:
    """The real commands: nothing is embedded, all is whole, and an entry is one like any other."""
    reader = Reader(tmp_path / "reader")
    assert reader.run("registry", "add", "team", publisher.served_by(server)).code == 0
    ran = reader.run("pull", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["new"], ran.json["ready"]) == (3, 3)
    assert reader.run("search", "hull sails", "-k", "1", "--json").json["hits"][0]["zettel_id"] == (
        "sails"
    )
    reader.check()
    assert reader.stats()["jobs"] == {"ready": 0, "running": 0, "failed": 0}
    assert (reader.knowledge / "boats.md").read_bytes() == publisher.files()["entries/boats.md"]
    (line,) = reader.call("sync-all", "--interval-min", 0, "--json").json["sources"]
    assert (line["kind"], line["unchanged"], line["scanned"]) == ("entries", 3, 3)


@pytest.mark.parametrize("validators", [True, False])
def test_an_unchanged_registry_costs_one_request(
    tmp_path: Path, publisher: Publisher, server: LoopbackServer, validators: bool
) -> None:
    """Also on a host that gives neither ETag nor Last-Modified."""
    reader = Reader(tmp_path / "reader")
    reader.follow("team", publisher.served_by(server, validators=validators))
    reader.sync()
    assert len(fresh(server)) == 1 + 2 * 3
    report = reader.sync()
    assert reader.counts(report) == {"unchanged": 3}
    assert report["registries"][0]["outcome"] == "unchanged"
    (request,) = server.requests
    assert (request.path, bool(request.headers["If-None-Match"])) == ("/index.json", validators)


def test_only_what_is_newer_is_fetched(
    reader: Reader,
    publisher: Publisher,
    server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1.10.0 comes after 1.9.0; the old text goes as the new one comes, without the model."""
    publisher.write("boats", "1.9.0", "the bosun is awake")
    publisher.publish()
    reader.sync()
    fresh(server)
    publisher.write("boats", "1.10.0", "the cook is awake")
    publisher.write("oars")
    publisher.publish()
    with monkeypatch.context() as patched:
        no_model(patched)
        report = reader.sync()
    assert reader.counts(report) == {"new": 1, "updated": 1, "unchanged": 2}
    boats = line_of(report, "boats")
    assert (boats["before"], boats["version"]) == ("1.9.0", "1.10.0")
    asked = fresh(server)
    assert {path for path in asked if path.startswith("/entries/")} == {
        "/entries/boats.md",
        "/entries/oars.md",
    }
    assert len(asked) == 1 + 2 * 2
    assert (reader.hits("cook"), reader.hits("bosun")) == (["boats"], [])
    reader.check()


def test_a_changed_file_is_kept_until_theirs_is_wanted(
    reader: Reader, publisher: Publisher
) -> None:
    """It is said each time; put aside, it is not searched."""
    reader.sync()
    path = reader.edit("boats", entry_text("boats", body="my own zebra"))
    publisher.write("boats", "2.0.0", "a giraffe")
    publisher.publish()
    report = reader.sync()
    assert reader.counts(report) == {"unchanged": 2, "kept": 1}
    assert line_of(report, "boats")["reason"] == (
        "changed here since 1.0.0, and 2.0.0 is there; --theirs moves that aside"
    )
    assert "zebra" in path.read_text()
    assert reader.counts(reader.said("pull", "boats")) == {"kept": 1}

    report = reader.said("pull", "--theirs")
    aside = Path(line_of(report, "boats")["put_aside"])
    assert (aside.name.startswith("boats.mine-"), "zebra" in aside.read_text()) == (True, True)
    assert "giraffe" in path.read_text()
    reader.call("sync-all", "--interval-min", 0)
    assert (reader.hits("giraffe"), reader.hits("zebra")) == (["boats"], [])
    assert reader.counts(reader.sync()) == {"unchanged": 3}


def test_a_file_of_the_persons_own_is_not_written_over(
    reader: Reader, publisher: Publisher
) -> None:
    """Whether it is an entry with that id elsewhere, or anything else with that name."""
    reader.knowledge.mkdir(parents=True)
    (reader.knowledge / "mine.md").write_text(entry_text("boats"))
    (reader.knowledge / "sails.md").write_text("no entry")
    report = reader.sync()
    assert reader.counts(report) == {"new": 1, "kept": 2}
    assert not (reader.knowledge / "boats.md").exists()
    assert (reader.knowledge / "sails.md").read_text() == "no entry"


def test_what_is_gone_here_comes_back_by_name_only(reader: Reader) -> None:
    """A file that was deleted, and an entry that was removed with `kb rm`."""
    reader.sync()
    (reader.knowledge / "boats.md").unlink()
    doc = reader.call("show", "sails", "--json").json["doc"]["doc_id"]
    assert reader.call("rm", doc, "--yes").code == 0
    report = reader.sync()
    assert reader.counts(report) == {"unchanged": 1, "kept": 2}
    assert line_of(report, "boats")["reason"] == "deleted here; kb pull boats brings it back"
    assert line_of(report, "sails")["reason"] == "removed here; kb pull sails brings it back"
    assert reader.counts(reader.said("pull")) == {"unchanged": 1, "kept": 2}
    reader.said("pull", "boats", "sails")
    assert (reader.hits("about"), reader.counts(reader.sync())) == (
        ["boats", "sails", "wood"],
        {"unchanged": 3},
    )


def test_a_moved_file_is_updated_where_it_is(reader: Reader, publisher: Publisher) -> None:
    """It is neither deleted nor a person's own, although no sync has seen the move."""
    reader.sync()
    moved = reader.knowledge / "sub" / "vessels.md"
    moved.parent.mkdir()
    (reader.knowledge / "boats.md").rename(moved)
    publisher.write("boats", "1.1.0", "a giraffe")
    publisher.publish()
    assert reader.counts(reader.sync()) == {"updated": 1, "unchanged": 2}
    assert "giraffe" in moved.read_text()
    assert not (reader.knowledge / "boats.md").exists()


def test_what_is_withdrawn_stays(reader: Reader, publisher: Publisher) -> None:
    """It is said, and it is still found."""
    reader.sync()
    (publisher.source / "wood.md").unlink()
    publisher.publish()
    report = reader.sync()
    assert reader.counts(report) == {"unchanged": 2, "kept": 1}
    assert "not in team any more" in line_of(report, "wood")["reason"]
    assert "wood" in reader.hits("hull")


def test_without_a_network_the_home_goes_on(tmp_path: Path, publisher: Publisher) -> None:
    """Exit 1 with a line that says so; searches answer as before."""
    reader = Reader(tmp_path / "reader")
    with serving() as server:
        reader.follow("team", publisher.served_by(server))
        reader.sync()
    ran = reader.run("sync-knowledge")
    assert (ran.code, "the entries that are here stay as they are" in ran.err) == (1, True)
    assert "the server cannot be reached" in ran.err
    assert reader.hits("boats") == ["boats"]


def test_the_registry_that_was_added_first_wins(
    reader: Reader, publisher: Publisher, server: LoopbackServer, tmp_path: Path
) -> None:
    """It is said; also while the first one cannot be reached, and unless the other is named."""
    other = Publisher(tmp_path / "other")
    other.write("boats", "9.0.0", "another registry")
    other.write("tar")
    other.publish()
    reader.follow("other", other.to)
    report = reader.sync()
    assert (reader.counts(report), line_of(report, "boats")["registry"]) == ({"new": 4}, "team")
    assert report["registries"][1]["shadowed"] == ["boats"]
    server.routes["/index.json"] = Answer(b"", 503)
    assert reader.counts(reader.sync(code=3)) == {"unchanged": 1}
    kept = reader.said("pull", "--registry", "other")
    assert line_of(kept, "boats")["reason"] == "it comes from team, which was added first"
    taken = reader.said("pull", "boats", "--registry", "other")
    assert line_of(taken, "boats")["version"] == "9.0.0"
    server.routes.clear()
    assert reader.call("registry", "rm", "team", "--json").json == {"removed": "team", "entries": 2}
    assert len(list(reader.knowledge.glob("*.md"))) == 4
    listed = reader.call("registry", "ls", "--json").json["registries"]
    assert [one["name"] for one in listed] == ["other"]


def test_what_is_asked_wrongly_changes_nothing(reader: Reader, tmp_path: Path) -> None:
    """An entry that no registry has, a registry that nobody knows, a place that is none."""
    assert reader.call("pull", "boats", "nothing").code == 4
    assert reader.call("pull", "--registry", "nobody").code == 4
    assert reader.call("registry", "rm", "nobody").code == 4
    assert reader.call("registry", "add", "x", tmp_path).code == 2
    assert reader.call("registry", "add", "team", "https://elsewhere.example/").code == 2
    assert reader.call("registry", "add", "y", "https://a.example", "--trust", "k").code == 2
    assert list(reader.knowledge.iterdir()) == []


def test_another_models_vectors_are_not_used(reader: Reader, publisher: Publisher) -> None:
    """The entries come, and this home's model embeds them; both sets can be published."""
    other = ("--cfg", "entry.tokens_max=64", "--cfg", "entry.overlap_tokens=8")
    argv = [str(part) for part in other]
    report = reader.call(*argv, "sync-knowledge", "--json")
    assert (report.code, report.json["new"], report.json["ready"]) == (0, 3, 0)
    assert reader.stats()["vectors"] == 6
    rig, place = publisher.rig, (publisher.source, "--to", publisher.to)
    assert rig.call(*argv, "registry", "publish", *place, "--json").json["updated"] == 3
    index = json.loads(publisher.files()["index.json"])
    assert [len(entry["vectors"]) for entry in index["entries"]] == [2, 2, 2]
    assert reader.counts(reader.sync()) == {"unchanged": 3}


def test_two_syncs_at_once(reader: Reader, server: LoopbackServer) -> None:
    """One waits for the other: each entry is fetched once, and both reports add up."""
    with (
        reader.start("sync-knowledge", "--json", armed="registry.after_intent=pause") as first,
        reader.start("sync-knowledge", "--json") as second,
    ):
        done = [ended(process) for process in (first, second)]
    assert [one.code for one in done] == [0, 0], done
    assert sorted(one.json["new"] for one in done) == [0, 3]
    assert sorted(one.json["unchanged"] for one in done) == [0, 3]
    assert sorted(server.paths()).count("/entries/boats.md") == 1
    reader.check()


def test_two_hundred_entries_ask_no_model(
    tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All come with their vectors: no text is cut or embedded, and no job is left."""
    publisher = Publisher(tmp_path)
    for number in range(200):
        publisher.write(f"entry-{number}")
    publisher.publish()
    reader = Reader(tmp_path / "reader")
    reader.follow("team", publisher.served_by(server))
    with monkeypatch.context() as patched:
        no_model(patched)
        report = reader.sync()
        assert (report["new"], report["ready"]) == (200, 200)
        fresh(server)
        assert reader.counts(reader.sync()) == {"unchanged": 200}
        assert fresh(server) == ["/index.json"]
    stats = reader.stats()
    assert (stats["vectors"], stats["passages"], stats["jobs"]["ready"]) == (400, 400, 0)
