"""Packs in a home's searches, and archives of them: what the commands do, in this process."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from commands import accounted
from crash_rig import Called, Rig
from kb_cli.main import kb
from loopback import Answer, serving
from packs_archive import archive, manifest, members, written

from kb.knowledge.packs.keys import read_key

ALLOW = ("--cfg", 'fetch.allow=["127.0.0.1"]')
NOTES = {
    "quince.md": "---\nkind: fruit\n---\n# Quince\n\nA quince is hard. See [[medlar]].\n",
    "medlar.md": "# Medlar\n\nA medlar is eaten soft. See [[damson]].\n",
    "damson.md": "# Damson\n\nA damson is a small plum.\n",
}


class Home:
    """A home that commands are run on."""

    def __init__(self, root: Path) -> None:
        self._rig = Rig(root, cfg=("embed.kind=hashing",))
        self.root = self._rig.home

    def run(self, *args: object) -> Called:
        return self._rig.call(*args)

    def ids(self) -> dict[str, str]:
        rows = self.run("ls", "--json", "--limit", 0).json["docs"]
        return {Path(row["source"]).name: row["doc_id"] for row in rows}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def other(tmp_path: Path) -> Home:
    return Home(tmp_path / "other")


@pytest.fixture
def notes(tmp_path: Path, home: Home) -> Path:
    """A folder with a manifest; links are those of the texts."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    assert home.run("pack", "build", folder, "--id", "fruit").code == 0
    return folder


def hits(home: Home, *args: object) -> list[Any]:
    ran = home.run("search", *args, "--json")
    assert ran.code == 0, ran
    found: list[Any] = ran.json["hits"]
    return found


def names(home: Home, *args: object) -> list[str]:
    return [hit["pack"]["selector"] for hit in hits(home, *args)]


def test_a_pack_is_searched_and_kept_current(home: Home, notes: Path) -> None:
    """Found when it is added; new, edited and vanished docs follow a sync; `rm` takes them out."""
    added = home.run("pack", "add", notes, "--json").json
    assert (added["sync"]["added"], accounted(added["sync"])) == (3, True)
    (hit,) = hits(home, "hard", "--mode", "lexical")
    assert hit["pack"] == {"pack_id": "fruit", "selector": "quince"}
    assert home.run("pack", "add", notes, "--json").json["sync"]["unchanged"] == 3

    (notes / "damson.md").unlink()
    (notes / "medlar.md").write_text("# Medlar\n\nA medlar is bletted.\n")
    (notes / "sloe.md").write_text("# Sloe\n\nA sloe is bitter.\n")
    home.run("pack", "build", notes, "--id", "fruit")
    line = home.run("sync-all", "--source", "fruit", "--json").json["sources"][0]
    assert [line[name] for name in ("added", "updated", "unchanged", "removed")] == [1, 1, 1, 1]
    assert set(names(home, "bletted bitter small", "--mode", "lexical")) == {"sloe", "medlar"}

    (notes / "sloe.md").unlink()
    ran = home.run("sync-all", "--source", "fruit", "--json")
    assert (ran.code, ran.json["failed"], ran.json["removed"]) == (3, 1, 0)
    assert "sloe.md" in ran.json["sources"][0]["problems"][0]["source"]
    assert names(home, "bitter", "--mode", "lexical") == ["sloe"]
    (notes / "manifest.json").rename(notes / "m.json")
    ran = home.run("sync-all", "--source", "fruit", "--json")
    assert (ran.code, ran.json["sources"][0]["outcome"]) == (6, "held_back")
    assert len(home.ids()) == 3

    assert home.run("pack", "rm", "fruit", "--json").json == {"removed": "fruit", "docs": 3}
    assert (home.ids(), home.run("sources", "--json").json["sources"]) == ({}, [])
    (notes / "m.json").rename(notes / "manifest.json")
    back = home.run("pack", "add", notes, "--visibility", "shared", "--no-wait", "--json")
    assert back.json["sync"]["resurrected"] == 2
    listed = home.run("show", home.ids()["quince.md"], "--json").json["doc"]
    assert listed["visibility"] == "shared"
    home.run("visibility", listed["doc_id"], "private")
    for again in (("sync-all", "--interval-min", 0), ("pack", "add", notes)):
        assert home.run(*again).code == 3
        listed = home.run("show", home.ids()["quince.md"], "--json").json["doc"]
        assert listed["visibility"] == "private"
    assert home.run("check").code == 0


def test_only_packs_that_are_named(home: Home, notes: Path, tmp_path: Path) -> None:
    """Filtered before ranks are taken; by id or selector; an unknown one is 4."""
    (tmp_path / "mine.md").write_text("# Mine\n\nMy quince, my medlar, my damson.\n")
    home.run("add", tmp_path / "mine.md")
    home.run("pack", "add", notes)
    package = tmp_path / "package"
    package.mkdir()
    (package / "manifest.yaml").write_text(
        "manifest: {pack_id: more, selector: 'pkg:m', docs: [{source_path: a.md, title: A, "
        "summary: ''}]}"
    )
    (package / "a.md").write_text("# A\n\nOne more quince.\n")
    home.run("pack", "add", package)
    assert len(hits(home, "quince")) > len(names(home, "quince", "--pack", "fruit"))
    assert names(home, "quince", "--pack", "pkg:m") == ["a"]
    both = names(home, "quince", "--pack", "more", "--pack", "fruit", "--mode", "lexical")
    assert sorted(both) == ["a", "quince"]
    assert len(hits(home, "quince", "-k", 1, "--pack", "more")) == 1
    ran = home.run("search", "quince", "--pack", "nobody")
    assert (ran.code, "no pack nobody" in ran.err) == (4, True)


def test_neighbors_follow_the_hits(home: Home, notes: Path) -> None:
    """Each once, below every hit, with the link that brought it; the same bytes each time."""
    home.run("pack", "add", notes)
    args = ("search", "hard quince", "--mode", "lexical", "--with-neighbors", "--json")
    ran = home.run(*args)
    first, second = ran.json["hits"]
    assert first["via"] is None
    assert (second["pack"]["selector"], second["rank"]) == ("medlar", 2)
    via = {"doc_id": first["doc_id"], "selector": "quince", "edge": "references"}
    assert (second["via"], second["score"] < first["score"]) == (via, True)
    assert home.run(*args).out == ran.out
    both = hits(home, "quince medlar", "--mode", "lexical", "--with-neighbors")
    assert [hit["via"] and hit["via"]["selector"] for hit in both] == [None, None, "medlar"]
    assert [hit["rank"] for hit in both] == [1, 2, 3]
    medlar = home.ids()["medlar.md"]
    home.run("rm", medlar, "--yes")
    assert len(hits(home, "hard", "--mode", "lexical", "--with-neighbors")) == 1


def test_another_home_makes_its_own(home: Home, tmp_path: Path) -> None:
    """An archive of another model is embedded here; one that is cut otherwise is cut here, too."""
    (tmp_path / "q.md").write_text(NOTES["quince.md"])
    home.run("add", tmp_path / "q.md", "--visibility", "public")
    home.run("pack", "export", "--query", "quince", "--to", tmp_path / "q.tar")
    with tarfile.open(tmp_path / "q.tar") as opened:
        said = json.loads(opened.extractfile("manifest.json").read())["portable"]
    for chunker, passages in ((said["chunker"], 3), ("chunk-0", 0)):
        data = archive(manifest=manifest(portable={"chunker": chunker}))
        other = Home(tmp_path / f"home-{passages}")
        path = written(tmp_path, "fruit.tar", data)
        assert other.run("pack", "add", path, "--no-wait").code == 0
        stats = other.run("stats", "--json").json
        assert (stats["passages"], stats["vectors"], stats["jobs"]["ready"]) == (passages, 0, 2)
        assert other.run("worker", "--drain").code == 0
        assert [hit["title"] for hit in hits(other, "ripe", "--mode", "lexical")] == ["Pear"]
        stats = other.run("stats", "--json").json
        assert stats["passages"] == stats["vectors"] == (passages or 2)
        assert other.run("check").code == 0


def test_signatures(home: Home, other: Home, tmp_path: Path) -> None:
    """A key of one's own, one that is trusted, a stranger's; an archive nobody signed."""
    (tmp_path / "q.md").write_text(NOTES["quince.md"])
    home.run("add", tmp_path / "q.md")
    doc = home.ids()["q.md"]
    key, path = tmp_path / "key", tmp_path / "q.tar"
    public = home.run("pack", "keygen", key).out.strip()
    assert key.stat().st_mode & 0o777 == 0o600
    assert home.run("pack", "keygen", key).code == 2
    stranger = home.run("pack", "keygen", tmp_path / "k2", "--json").json["public_key"]
    made = home.run("pack", "export", "--doc", doc, "--to", path, "--key", key, "--json").json
    assert (made["signed_by"], made["docs"]) == (public, 1)
    ran = other.run("pack", "add", path, "--trust", stranger)
    assert (ran.code, public in ran.err, other.root.exists()) == (1, True, False)
    trusted = ("--cfg", f"pack.trusted_keys=['{public}']")
    ran = other.run(*trusted, "pack", "add", path, "--trust", stranger)
    assert (ran.code, f"--trust asks for {stranger}" in ran.err) == (1, True)
    for args in (("--trust", public), ()):
        ran = other.run(*trusted, "pack", "add", path, *args, "--json")
        assert (ran.code, ran.json["signed_by"], ran.json["warnings"]) == (0, public, [])
    assert "no trusted key" in other.run("pack", "add", path).err
    bare = written(tmp_path, "bare.tar", archive())
    ran = other.run("pack", "add", bare, "--trust", public)
    assert (ran.code, "not signed" in ran.err) == (1, True)
    data = bytearray(path.read_bytes())
    data[-1100] ^= 1
    ran = other.run("pack", "add", written(tmp_path, "bad.tar", bytes(data)))
    assert ran.code == 1


def test_an_id_stays_with_its_signer(home: Home, tmp_path: Path) -> None:
    """No other key, no unsigned archive and no lower version takes a signed pack's place."""

    def added(name: str, key: str, *args: str, version: str = "1.9") -> Called:
        signer = read_key(tmp_path / key) if key else None
        data = archive(signer, manifest=manifest(version=version))
        return home.run("pack", "add", written(tmp_path, f"{name}.tar", data), *args)

    mine, _ = (home.run("pack", "keygen", tmp_path / name).out.strip() for name in ("a", "b"))
    assert added("first", "").code == 0
    assert added("mine", "a").code == 0
    for name, key, said in (("other", "b", "is signed by"), ("none", "", "is not signed")):
        ran = added(name, key, "--downgrade", version="2.0")
        assert (ran.code, said in ran.err, "kb pack rm fruit" in ran.err) == (1, True, True), ran
    assert [one["signed_by"] for one in home.run("pack", "ls", "--json").json["packs"]] == [mine]
    assert added("later", "a", version="1.10").code == 0
    ran = added("mine", "a")
    assert (ran.code, "1.9 is lower than 1.10" in ran.err, "--downgrade" in ran.err) == (
        6,
        True,
        True,
    )
    assert added("mine", "a", "--downgrade").code == 0
    seal = home.root / "packs" / "fruit" / "seal.json"
    whole = seal.read_bytes()
    for odd in (archive_seal("b", tmp_path), b"{}"):
        seal.write_bytes(odd)
        ran = home.run("sync-all", "--interval-min", 0, "--json")
        assert (ran.code, mine in ran.json["sources"][0]["reason"]) == (6, True)
        assert home.run("pack", "list", "fruit").code == 1
    seal.write_bytes(whole)
    assert home.run("sync-all", "--interval-min", 0).code == 0
    assert home.run("pack", "rm", "fruit").code == 0
    assert added("other", "b").code == 0
    assert home.run("check").code == 0


def archive_seal(key: str, folder: Path) -> bytes:
    """The seal of an archive that this key has signed."""
    return bytes(members(read_key(folder / key))[-1].data)


def test_a_folder_of_a_lower_version_is_held_back(home: Home, notes: Path) -> None:
    """A sync takes a pack's newer versions by itself, an older one when it is asked to."""
    path = notes / "manifest.json"
    said = json.loads(path.read_text())

    def version(number: str) -> None:
        path.write_text(json.dumps({**said, "version": number}))

    version("2")
    assert home.run("pack", "add", notes).code == 0
    version("10")
    assert home.run("sync-all", "--interval-min", 0).code == 0
    (notes / "quince.md").write_text("# Quince\n\nAn old mistake.\n")
    version("9")
    for dry in (("--dry-run",), ()):
        ran = home.run("sync-all", "--interval-min", 0, "--json", *dry)
        assert "9 is lower than 10" in str(ran.json["sources"][0]["reason"]), dry
    assert (ran.code, names(home, "mistake", "--mode", "lexical")) == (6, [])
    assert home.run("pack", "add", notes).code == 6
    assert home.run("pack", "add", notes, "--downgrade").code == 0
    assert names(home, "mistake", "--mode", "lexical") == ["quince"]
    assert home.run("pack", "ls", "--json").json["packs"][0]["version"] == "9"


def test_a_project_trusts_nobody(tmp_path: Path) -> None:
    """Whose packs are good is for the person to say, not for a folder that was cloned."""
    rig = Rig(tmp_path)
    rig.home = tmp_path / "clone" / ".kb"
    rig.home.mkdir(parents=True)
    (rig.home / "kb.toml").write_text("[pack]\ntrusted_keys = []\n")
    said = rig.call("pack", "ls")
    assert (said.code, "kb.toml: pack.trusted_keys comes with the project" in said.err) == (0, True)
    accepted = CliRunner(env=rig.env()).invoke(kb, ["trust", str(rig.home.parent), "--yes"], obj={})
    said = rig.call("pack", "ls")
    assert accepted.exit_code == 0
    assert "pack.trusted_keys is for your own settings alone" in said.err


def test_a_pack_is_exported_with_its_links(home: Home, other: Home, notes: Path) -> None:
    """What its manifest says goes along, links only between docs that do."""
    home.run("pack", "add", notes)
    home.run("visibility", home.ids()["damson.md"], "private")
    path = notes.parent / "p.tar"
    ran = home.run("pack", "export", "--pack", "fruit", "--to", path)
    assert (ran.code, "1 private doc left out" in ran.err) == (0, True)
    other.run("pack", "add", path)
    docs = other.run("pack", "list", "fruit", "--json").json["docs"]
    assert [(doc["selector"], doc["kind"]) for doc in docs] == [
        ("medlar", "reference"),
        ("quince", "fruit"),
    ]
    assert [[edge["target"] for edge in doc["related"]] for doc in docs] == [[], ["medlar"]]
    found = hits(other, "hard", "--mode", "lexical", "--with-neighbors")
    assert [hit["pack"]["selector"] for hit in found] == ["quince", "medlar"]


def test_an_archive_from_a_server(home: Home) -> None:
    """By the one fetcher and under its limits, whatever the server calls it."""
    with serving() as server:
        headers = {"Content-Type": "text/plain"}
        server.routes["/fruit.tar"] = Answer(body=archive(), headers=headers)
        url = server.url("/fruit.tar")
        assert home.run(*ALLOW, "pack", "add", url).code == 0
        ran = home.run(*ALLOW, "--cfg", "fetch.bytes_max=100", "pack", "add", url)
        assert (ran.code, "100" in ran.err) == (1, True)
        assert home.run("pack", "add", url).code == 1
    assert names(home, "ripe", "--mode", "lexical") == ["pear"]


def test_a_name_that_no_file_can_have_stops_nothing(tmp_path: Path, home: Home) -> None:
    """A manifest may say anything: what is no file of its folder is named, the rest comes in."""
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "tea.md").write_text("# Tea\n\nTea is hot.\n")
    paths = ["tea.md", "a\0b.md", "../tea.md", "/etc/hostname", "y" * 400, "./tea.md"]
    docs = [
        {"id": f"odd.{n}", "selector": f"s{n}", "source_path": path, "title": "T", "summary": ""}
        | {"kind": "note", "tags": [], "related": []}
        for n, path in enumerate(paths)
    ]
    (tmp_path / "odd" / "manifest.json").write_text(json.dumps({"pack_id": "odd", "docs": docs}))
    added = home.run("pack", "add", tmp_path / "odd", "--json")
    assert (added.code, added.json["sync"]["added"], added.json["sync"]["failed"]) == (3, 1, 5)
    assert names(home, "hot", "--mode", "lexical") == ["s0"]
    assert home.run("sync-all", "--interval-min", 0).code == 3
