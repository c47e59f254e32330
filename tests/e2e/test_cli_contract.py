"""The command line that scripts and agents rely on: JSON shapes, ids and exit codes."""

import json
from pathlib import Path

import pytest
from commands import Home, accounted

ADD_KEYS = {
    "scanned",
    "added",
    "updated",
    "unchanged",
    "resurrected",
    "skipped",
    "failed",
    "docs",
    "problems",
}
SEARCH_KEYS = {"query", "mode", "hits", "entity_alignment", "warnings"}
HIT_KEYS = {
    "rank",
    "score",
    "chunk_id",
    "doc_id",
    "title",
    "source",
    "kind",
    "tags",
    "heading",
    "text",
    "start",
    "end",
    "freshness",
    "legs",
}
NOTES = {
    "tea.md": "---\ntags: [brew]\n---\n# Tea\n\nGreen tea is brewed at 70 degrees, says @ann.\n",
    "mail.md": "# Mail\n\nWrite to ann@example.org of #matcha tea.\n",
    "plain.txt": "Coffee wants hotter water than most leaves.\n",
    "page.html": "<html><head><title>Page</title></head><body><h1>Page</h1>"
    "<p>Water boils at 100 degrees.</p></body></html>",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with four notes in it, which the tests only read."""
    folder = tmp_path_factory.mktemp("contract")
    write(folder / "notes", NOTES)
    home = Home(folder / "home")
    added = home.run("add", "-r", folder / "notes", "--tags", "a, b", "--json")
    assert added.code == 0, added.err
    return home


def write(folder: Path, notes: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in notes.items():
        (folder / name).write_text(text)
    return folder


def test_add_json_has_the_contract_keys_and_adds_up(home: Home, tmp_path: Path) -> None:
    """`kb add --json` has the keys of the contract, and every scanned source has an outcome."""
    folder = write(tmp_path, {"new.md": "# New\n\nnew", "empty.md": "", "disk.img": "x"})
    fresh = Home(tmp_path / "home")
    ran = fresh.run("add", "-r", folder, tmp_path / "missing.md", "--json")
    report = ran.json
    assert report.keys() >= ADD_KEYS
    assert accounted(report)
    assert (report["added"], report["skipped"], report["failed"]) == (1, 3, 1)
    assert ran.code == 3
    assert all(line.keys() >= {"doc_id", "source", "status"} for line in report["docs"])
    assert all(p.keys() >= {"source", "outcome", "reason"} for p in report["problems"])


def test_add_goes_through_its_five_ends(tmp_path: Path) -> None:
    """A file is added, unchanged, updated, and after removal resurrected; it adds up each time."""
    home, note = Home(tmp_path / "home"), tmp_path / "note.md"
    seen: list[str] = []

    def add() -> None:
        report = home.run("add", note, "--json").json
        assert accounted(report)
        seen.append(report["docs"][0]["status"])

    note.write_text("# One\n\nfirst")
    add()
    add()
    note.write_text("# One\n\nsecond")
    add()
    assert home.run("rm", home.ids()["note.md"], "--yes").code == 0
    add()
    assert seen == ["added", "unchanged", "updated", "resurrected"]


def test_search_json_has_the_contract_keys(home: Home) -> None:
    """`kb search --json` has the keys of the contract in the answer and in each hit."""
    result = home.run("search", "green tea @ann", "--json").json
    assert result.keys() >= SEARCH_KEYS
    assert result["hits"]
    for rank, hit in enumerate(result["hits"], 1):
        assert hit.keys() >= HIT_KEYS
        assert hit["rank"] == rank
        assert hit["legs"].keys() == {"lexical", "dense"}
        assert hit["freshness"] in {"fresh", "changed", "gone", "unknown"}
    assert result["entity_alignment"][0]["entity"] == "@ann"


def test_search_json_twice_gives_equal_bytes(home: Home) -> None:
    """The same question to the same store gives the same bytes."""
    first = home.run("search", "water tea", "--json", "--explain").out
    assert first == home.run("search", "water tea", "--json", "--explain").out


def test_hits_carry_their_place(home: Home) -> None:
    """A hit below front matter names the line of the file, not of the text without it."""
    (hit,) = home.run("search", "brewed", "-k", "1", "--mode", "lexical", "--json").json["hits"]
    assert (hit["line"], hit["title"], hit["kind"]) == (4, "Tea", "file")
    assert set(hit["tags"]) == {"brew", "a", "b"}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--tag", "brew"], ["tea.md"]),
        (["--kind", "stdin"], []),
        (["--require-entity", "#matcha"], ["mail.md"]),
        (["--require-entity", "ann@example.org"], ["mail.md"]),
        (["--require-entity", "@ann"], ["tea.md"]),
        (["--mode", "lexical"], ["mail.md", "tea.md"]),
    ],
    ids=" ".join,
)
def test_search_limits(home: Home, options: list[str], names: list[str]) -> None:
    """Tags, kinds, required entities and the mode decide what may be found."""
    result = home.run("search", "tea", "--json", *options).json
    assert sorted(Path(hit["source"]).name for hit in result["hits"]) == names


def test_search_of_one_doc_and_with_boost(home: Home) -> None:
    """--doc takes a short id; --boost-entity lifts, and --explain says by how much."""
    short = home.ids()["mail.md"][:6]
    result = home.run("search", "tea", "--doc", short, "--json").json
    assert [Path(hit["source"]).name for hit in result["hits"]] == ["mail.md"]
    plain = home.run("search", "tea", "--explain", "--json").json
    boosted = home.run("search", "tea", "--boost-entity", "#matcha", "--explain", "--json").json
    before = {hit["chunk_id"]: hit for hit in plain["hits"]}
    lifted = [hit for hit in boosted["hits"] if hit["explain"]["boost"] == 1.5]
    assert lifted
    for hit in lifted:
        had = before[hit["chunk_id"]]
        assert hit["explain"]["fused"] == had["explain"]["fused"]
        assert hit["explain"]["rank_score"] >= had["explain"]["rank_score"]
        assert hit["rank"] <= had["rank"]


def test_search_batch_answers_line_by_line(home: Home, tmp_path: Path) -> None:
    """A batch gives one object a line in the order asked; a bad line is named and costs only 3."""
    lines = ['{"_id": 7, "text": "tea"}', "not json", "", '{"_id": "x", "text": "coffee water"}']
    batch = tmp_path / "batch.jsonl"
    batch.write_text("\n".join(lines))
    from_file = home.run("search", "--batch", batch, "-k", "1")
    answers = [json.loads(line) for line in from_file.out.splitlines()]
    assert [answer["_id"] for answer in answers] == [7, None, "x"]
    assert "error" in answers[1]
    assert answers[0].keys() >= {"_id", *SEARCH_KEYS}
    assert len(answers[0]["hits"]) == 1
    assert from_file.code == 3
    assert "line 2" in from_file.err
    from_stdin = home.run("search", "--batch", "-", "-k", "1", stdin=batch.read_bytes())
    assert from_stdin.out == from_file.out


def test_max_tokens_says_what_it_cut(home: Home) -> None:
    """A budget leaves hits out and says how many."""
    result = home.run("search", "water tea", "--max-tokens", "20", "--json").json
    assert result["hits"]
    assert "left out" in result["truncated"]


def test_ls_json(home: Home) -> None:
    """`kb ls --json` lists docs with what a script needs, and says how many match in all."""
    listing = home.run("ls", "--json", "--limit", "2").json
    assert listing["total"] == 4
    assert len(listing["docs"]) == 2
    assert listing["docs"][0].keys() >= {
        "doc_id",
        "title",
        "source",
        "kind",
        "tags",
        "visibility",
        "status",
        "version",
    }


def test_show_of_doc_and_passage(home: Home) -> None:
    """`kb show` tells a doc with its passages, and a passage with what stands around it."""
    doc = home.run("show", home.ids()["tea.md"][:8], "--json").json
    assert doc.keys() >= {"doc", "passages"}
    passage = home.run("show", doc["passages"][0]["chunk_id"][:8], "--json").json
    assert passage.keys() >= {"passage", "doc", "before", "after"}
    assert passage["doc"]["doc_id"] == doc["doc"]["doc_id"]


def test_stats_json(home: Home) -> None:
    """`kb stats --json` counts docs by status, jobs, vectors and bytes."""
    stats = home.run("stats", "--json").json
    assert stats.keys() >= {"docs", "jobs", "passages", "vectors", "entities", "disk_bytes"}
    assert stats["docs"] == {"active": 4}
    assert stats["jobs"] == {"ready": 0, "running": 0, "failed": 0}
    assert stats["disk_bytes"] > 0


def test_check_json_is_sound(home: Home) -> None:
    """A home that was filled and searched is sound."""
    report = home.run("check", "--json")
    assert report.code == 0
    assert report.json["sound"] is True
    assert report.json["findings"] == []


def test_check_tells_people(home: Home) -> None:
    """The plain report counts what was looked at and ends in a verdict."""
    lines = home.run("check").out.splitlines()
    assert lines[-1] == "all is well"
    assert any(line.split() == ["4", "docs"] for line in lines)


def test_check_finds_damage_and_exits_with_5(tmp_path: Path) -> None:
    """A missing file is a finding and exit 5."""
    home, note = Home(tmp_path / "home"), tmp_path / "note.md"
    note.write_text("# Note\n\nwords")
    home.run("add", note)
    next((tmp_path / "home" / "md").rglob("*.md")).unlink()
    ran = home.run("check")
    assert ran.code == 5
    assert "1 finding" in ran.err


def test_similar_leaves_out_the_doc_itself(home: Home) -> None:
    """`kb similar` finds passages of other docs."""
    ident = home.ids()["tea.md"]
    result = home.run("similar", ident[:7], "--json").json
    assert result.keys() >= SEARCH_KEYS
    assert result["hits"]
    assert all(hit["doc_id"] != ident for hit in result["hits"])


def test_export_writes_markdown_and_raw(home: Home, tmp_path: Path) -> None:
    """Export writes the markdown or the bytes taken in, into a file, a folder or a pipe."""
    ident = home.ids()["tea.md"]
    piped = home.run("export", ident, "--to", "-")
    assert piped == home.run("export", ident)
    assert piped.out.startswith("# Tea")
    target = tmp_path / "out.md"
    assert home.run("export", ident, "-o", target, "--raw").code == 0
    assert target.read_text() == NOTES["tea.md"]
    again = home.run("export", ident, "--to", target)
    assert again.code == 2
    assert "--force" in again.err
    assert home.run("export", ident, "--to", tmp_path).out.strip() == str(tmp_path / "tea.md")
    assert home.run("export", ident, "--to", tmp_path / "no" / "where.md").code == 2


def test_visibility_is_kept_over_a_new_version(tmp_path: Path) -> None:
    """What a person said of a doc holds when its file changes."""
    home, note = Home(tmp_path / "home"), tmp_path / "note.md"
    note.write_text("# Note\n\nwords")
    home.run("add", note)
    assert home.run("visibility", home.ids()["note.md"][:5], "public").code == 0
    note.write_text("# Note\n\nother words")
    home.run("add", note)
    (row,) = home.run("ls", "--json").json["docs"]
    assert (row["visibility"], row["version"]) == ("public", 2)


def test_rm_waits_for_a_yes(home: Home) -> None:
    """On a pipe nothing is removed without --yes: exit 6, and what would go is listed."""
    before = home.ids()
    ran = home.run("rm", "--tag", "a")
    assert ran.code == 6
    assert "4 docs would be removed" in ran.err
    assert home.ids() == before


def test_rm_by_tag(tmp_path: Path) -> None:
    """--tag removes every doc with the tag and no other."""
    home = Home(tmp_path / "home")
    folder = write(tmp_path / "n", {"a.md": "---\ntags: [old]\n---\nalpha", "b.md": "beta"})
    home.run("add", "-r", folder)
    removed = home.run("rm", "--tag", "old", "--yes", "--json").json["removed"]
    assert len(removed) == 1
    assert set(home.ids()) == {"b.md"}
    assert home.run("search", "alpha", "--json").json["hits"][0]["source"].endswith("b.md")
    everything = home.run("ls", "--status", "all", "--json").json["docs"]
    assert {row["status"] for row in everything} == {"active", "tombstoned"}


def test_stdin_is_a_source(tmp_path: Path) -> None:
    """`kb add -` takes what is piped in; a titled note piped again is its next version."""
    home = Home(tmp_path / "home")
    first = home.run("add", "-", "--title", "Note", "--json", stdin="# Head\n\nPiped tea.").json
    assert first["docs"][0] | {"doc_id": ""} == {"doc_id": "", "source": "-", "status": "added"}
    again = home.run("add", "-", "--title", "Note", "--json", stdin="# Head\n\nPiped tea.").json
    assert again["unchanged"] == 1
    edited = home.run("add", "-", "--title", "Note", "--json", stdin="# Head\n\nMore tea.").json
    assert edited["updated"] == 1
    assert home.run("search", "tea", "--json").json["hits"][0]["title"] == "Note"
    empty = home.run("add", "-", "--json")
    assert (empty.code, empty.json["failed"]) == (3, 1)


def test_dry_run_does_nothing(tmp_path: Path) -> None:
    """--dry-run says what would be done, and makes not even the home."""
    home = Home(tmp_path / "home")
    folder = write(tmp_path / "n", NOTES)
    report = home.run("add", "-r", folder, "--dry-run", "--json").json
    assert report["added"] == 4
    assert accounted(report)
    assert not home.root.exists()
    assert "would be: 4 added" in home.run("add", "-r", folder, "--dry-run").out


def test_no_wait_then_drain(tmp_path: Path) -> None:
    """--no-wait leaves the work to `kb worker --drain`, and a search before it says so."""
    home = Home(tmp_path / "home")
    home.run("add", "-r", write(tmp_path / "n", NOTES), "--no-wait")
    early = home.run("search", "tea", "--json").json
    assert early["hits"] == []
    assert any("kb worker --drain" in warning for warning in early["warnings"])
    assert home.run("worker", "--drain").out == "0 jobs left, 0 failed\n"
    late = home.run("search", "tea", "--json").json
    assert late["hits"]
    assert late["warnings"] == []
