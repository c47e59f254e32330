"""The first hour with kb: what somebody types who has read nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import KB, Home, Ran, run, surroundings
from embed_server import embed_serving
from terminal import on_terminal

from kb.model.job import JobKind
from kb.store.jobs import queue
from kb.store.jobs.holder import holder_name
from kb.store.store import Store

PDF = Path(__file__).parents[2] / "examples" / "house" / "energy-survey.pdf"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is not there yet."""
    return Home(tmp_path / "home")


def vault(folder: Path, count: int) -> Path:
    """A folder with so many notes in a folder below it."""
    (folder / "below").mkdir(parents=True)
    for n in range(count):
        (folder / "below" / f"{n:04}.md").write_text(f"# Note {n}\n\nAbout kettles.\n")
    return folder


def test_a_folder_is_taken_in_as_it_is_named(home: Home, tmp_path: Path) -> None:
    """Without an option, with all below it, and kept current from then on."""
    ran = home.run("add", vault(tmp_path / "vault", 3))
    assert (ran.code, ran.out, ran.err) == (0, "3 added of 3 scanned\n", "")
    assert str(tmp_path / "vault") in home.run("sources").out


def test_a_title_is_not_for_a_folder(home: Home, tmp_path: Path) -> None:
    """A folder has no one title."""
    ran = home.run("add", vault(tmp_path / "vault", 1), "--title", "Mine")
    assert (ran.code, ran.err) == (2, "kb: --title is for a single source, and no folder\n")


def test_a_large_folder_is_asked_for_on_a_terminal(home: Home, tmp_path: Path) -> None:
    """No adds nothing and makes no home; -r, --yes, a pipe and a dry run ask nothing."""
    folder = vault(tmp_path / "vault", 1_001)
    code, shown = on_terminal(home.argv("add", folder), typed=b"n\n")
    assert code == 6
    assert "1,001 files; add them? [y/N]" in shown
    assert "nothing was added" in shown
    assert not home.root.exists()
    for argv in (("add", "--yes"), ("add", "-r")):
        code, shown = on_terminal(home.argv(*argv, folder, "--no-wait", "--ext", "html"))
        assert (code, "add them?" in shown) == (0, False)
    assert home.run("add", folder, "--no-wait").out == "1,001 added of 1,001 scanned\n"
    code, shown = on_terminal(home.argv("add", folder, "--no-wait"), typed=b"y\n")
    assert code == 0
    assert "1,001 unchanged of 1,001 scanned" in shown


def test_the_first_add_says_how_far_it_is(home: Home, tmp_path: Path) -> None:
    """Files and passages are counted, with their rates; the time left, once that can be told.

    What can be done meanwhile is said. With a model that takes its time.
    """
    folder = tmp_path / "vault"
    folder.mkdir()
    for n in range(30):
        words = " ".join(f"kettle{n} leaf{m} water" for m in range(400))
        (folder / f"{n:03}.md").write_text(f"# Note {n}\n\n{words}\n")
    with embed_serving("ollama") as server:
        server.answer_s = 0.5
        model = ("embed.kind=ollama", "embed.model=tiny", f"embed.base_url={server.base_url}")
        options = [part for said in model for part in ("--cfg", said)]
        code, shown = on_terminal([KB, "--home", str(home.root), *options, "add", str(folder)])
    assert code == 0
    assert "30 of 30 files" in shown
    assert re.search(r"\d+/s", shown)
    assert "a search by words finds what is in already" in shown
    counts = re.findall(r"([\d,]+) of ([\d,]+)(\+?) passages", shown)
    done, totals = ([int(row[place].replace(",", "")) for row in counts] for place in (0, 1))
    assert done == sorted(done)
    assert totals[-1] == home.run("stats", "--json").json["passages"]
    assert re.search(r"\d+ s left", shown)
    assert shown.endswith("30 added of 30 scanned\r\nkb: find it with: kb search WORDS\r\n")


def test_what_is_skipped_is_one_line_on_a_terminal(home: Home, tmp_path: Path) -> None:
    """By kind, with how each is listed; a pipe gets a line for each, as -v does."""
    folder = vault(tmp_path / "vault", 1)
    for name in ("a.img", "b.img", "c.IMG", "d.bin", "Makefile", "empty.md"):
        (folder / name).write_text("x" if name != "empty.md" else "")
    (folder / "link.md").symlink_to("below/0000.md")
    code, shown = on_terminal(home.argv("add", folder))
    assert code == 0
    assert (
        "kb: 7 skipped: 3 .img, 1 no extension, 1 .bin, 1 empty, 1 symbolic link; "
        "kb -v add lists each"
    ) in shown
    assert "a.iso" not in shown
    argv = home.argv("add", folder)
    code, shown = on_terminal([argv[0], "-v", *argv[1:]])
    assert (code, shown.count("kb: skipped: ")) == (0, 7)
    assert home.run("add", folder).err.count("kb: skipped: ") == 7


_HOLDER = "from kb.store.jobs.holder import holder_name; print(holder_name())"


def claim_all(home: Home, kind: JobKind, holder: str) -> None:
    """Have a holder work on all jobs of a kind, as its lease says."""
    with Store.open(home.root / "store") as store, store.write() as txn:
        hour_ms = 3_600_000
        claims = queue.claim(txn, store.clock, [kind], limit=9, lease_ms=hour_ms, holder=holder)
    assert claims


def test_a_search_beside_a_worker_does_not_ask_for_one(home: Home, tmp_path: Path) -> None:
    """It says that one is at work, and on how much; where that died, to start one."""
    home.run("add", vault(tmp_path / "vault", 3), "--no-wait")
    alone = "kb: 3 docs are not searchable yet; run `kb worker --drain` if no worker is at work\n"
    assert home.run("search", "kettles").err.startswith(alone)
    claim_all(home, "chunk", holder_name())
    beside = "kb: 3 docs are not searchable yet; a worker is at work on it\n"
    assert home.run("search", "kettles").err.startswith(beside)

    other = Home(tmp_path / "other")
    other.run("add", vault(tmp_path / "more", 1), "--no-wait")
    died = run([sys.executable, "-c", _HOLDER]).out.strip()
    claim_all(other, "chunk", died)
    alone = "kb: 1 doc is not searchable yet; run `kb worker --drain` if no worker is at work\n"
    assert other.run("search", "kettles").err.startswith(alone)


def test_a_search_beside_the_first_add_finds_words(home: Home, tmp_path: Path) -> None:
    """While `kb add` embeds, what it has cut is found, and nobody is sent to `kb worker`."""
    advice = "no vectors yet and are found by words alone; a worker is at work on it\n"
    folder = vault(tmp_path / "vault", 600)
    env = surroundings()
    with subprocess.Popen([KB, "--home", str(home.root), "add", str(folder)], env=env) as child:
        seen = Ran(code=1, out="", err="")
        # Between two jobs `add` holds none for a moment; and a doc may be cut after the hits of a
        # search were found, yet before it counts what waits.
        while child.poll() is None and not ("kettles" in seen.out and advice in seen.err):
            seen = run([KB, "--home", str(home.root), "search", "kettles", "--mode", "hybrid"])
        child.kill()
    assert "About kettles." in seen.out
    assert advice in seen.err


def test_an_export_to_a_terminal_is_text_that_drives_nothing(home: Home, tmp_path: Path) -> None:
    """What could drive it is escaped, and what is no text is refused; a pipe gets every byte."""
    note = tmp_path / "note.md"
    note.write_text("# Tea\n\nA kettle \033]0;owned\a sings.\n")
    home.run("add", note, PDF)
    ids = home.ids()
    code, shown = on_terminal(home.argv("export", ids["note.md"]))
    assert code == 0
    assert "A kettle" in shown
    assert "\033" not in shown
    code, shown = on_terminal(home.argv("export", ids[PDF.name], "--raw"))
    assert code == 2
    assert f"kb: the source of {ids[PDF.name]} is " in shown
    assert "-o FILE writes it to a file" in shown
    home.run("export", ids[PDF.name], "--raw", "-o", tmp_path / "copy.pdf")
    assert (tmp_path / "copy.pdf").read_bytes() == PDF.read_bytes()
    assert home.run("export", ids["note.md"], "--raw").out == note.read_text()


@pytest.fixture
def notes(home: Home, tmp_path: Path) -> Path:
    """A folder with two tagged notes that the home has."""
    folder = tmp_path / "notes"
    (folder / "House").mkdir(parents=True)
    tagged = "---\ntags: [house, heating]\n---\n# Boiler\n\nThe boiler hums.\n"
    (folder / "House" / "boiler.md").write_text(tagged)
    (folder / "tea.md").write_text("# Tea\n\nTea is brewed.\n")
    home.run("add", folder)
    return folder


@pytest.mark.parametrize("command", [("search", "boiler"), ("ls",)])
def test_a_filter_that_lets_nothing_through_names_the_nearest(
    home: Home, notes: Path, command: tuple[str, ...]
) -> None:
    """Of tags and of places; one that is there but fits nothing else is not named."""
    near = home.run(*command, "--tag", "huose")
    assert (near.code, near.out) == (0, "")
    assert "kb: no doc has the tag 'huose'; did you mean 'house'?\n" in near.err
    case = home.run(*command, "--tag", "Heatin")
    assert "did you mean 'heating'?" in case.err
    none = home.run(*command, "--tag", "zzz")
    assert "no doc has the tag 'zzz'; `kb facets` lists the tags that docs have" in none.err
    place = home.run(*command, "--source", "nowhere/house")
    assert f"did you mean '{notes / 'House'}'?" in place.err
    file = home.run(*command, "--source", "/else/where/boiler.md")
    assert f"did you mean '{notes / 'House' / 'boiler.md'}'?" in file.err
    known = home.run(*command, "--tag", "house", "--source", notes / "tea.md")
    assert "did you mean" not in known.err
    assert "kb facets" not in known.err
    assert home.run(*command, "--tag", "house").out != ""


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("search boiler --jsno", "no option --jsno; did you mean --json?"),
        ("search boiler -json", "no option -json; did you mean --json?"),
        (
            "search -lian",
            "no option -lian; a word that begins with - goes behind --: kb search -- ",
        ),
        ("ask --what", "no option --what; a word that begins with - goes behind --: kb ask -- "),
        ("search tea --home x", "no option --home of kb search; it goes before the command: kb "),
        ("ls --taq x", "no option --taq; did you mean --tag?"),
        ("--jsno ls", "no option --jsno"),
        ("rm -x", "no option -x"),
    ],
)
def test_an_unknown_option_is_said_to_be_one(home: Home, typed: str, told: str) -> None:
    """With the nearest that there is, or how a word is written that only looks like one."""
    ran = run([KB, *typed.split()])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"kb: {told}")
    assert "--help" in ran.err.splitlines()[1]


def test_a_doc_is_named_by_its_path_or_a_part_of_it(home: Home, notes: Path) -> None:
    """Absolute, from here, its end, its name, or a part of that: the doc of the id."""
    boiler = notes / "House" / "boiler.md"
    whole = home.run("show", home.ids()["boiler.md"])
    for typed in (boiler, "House/boiler.md", "boiler.md", "boiler", "BOIL", f"{boiler}"):
        ran = home.run("show", typed)
        assert (ran.code, ran.out, ran.err) == (0, whole.out, ""), typed
    assert home.run("show", "House/../House/boiler.md", cwd=notes).out == whole.out
    for typed in (f"{boiler}:6", "boiler.md:6", "House/boiler.md:6"):
        assert home.run("show", typed, cwd=notes).out == whole.out, typed
        at_line = home.run("open", "--print", typed, env=surroundings(EDITOR="vim", VISUAL=None))
        assert at_line.out.strip() == f"vim +6 {boiler}", typed
    assert home.run("export", "boiler.md").out.startswith("# Boiler")
    opened = home.run("open", "--print", "boiler", env=surroundings(EDITOR="vim", VISUAL=None))
    assert opened.out.strip() == f"vim {boiler}"


def test_a_part_of_several_paths_names_them(home: Home, notes: Path) -> None:
    """Each with its id, so that the next call is right."""
    (notes / "boiler.md").write_text("# Another\n")
    home.run("add", notes)
    ran = home.run("show", "boiler.md")
    assert ran.code == 2
    for source in (notes / "boiler.md", notes / "House" / "boiler.md"):
        assert f" {source}" in ran.err
    ident = ran.err.partition("several docs: ")[2].split()[0]
    assert home.run("show", ident).code == 0
    assert home.run("show", "House/boiler.md").code == 0


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("boyler.md", "nothing here has the id or the path boyler.md; did you mean {}/boiler.md?"),
        ("nix/zzzzz", "nothing here has the id or the path nix/zzzzz; `kb ls` lists the docs"),
        ("dead0", "nothing here has the id dead0; `kb ls` lists the docs"),
    ],
)
@pytest.mark.parametrize("command", ["show", "open", "export"])
def test_a_path_that_no_doc_has(
    home: Home, notes: Path, command: str, typed: str, told: str
) -> None:
    """The nearest is named, and for a folder how its docs are listed."""
    ran = home.run(command, typed)
    assert (ran.code, ran.err) == (4, f"kb: {told.format(notes / 'House')}\n")
    folder = home.run(command, notes)
    assert folder.code == 4
    assert f"`kb ls --source {notes}` lists the 2 docs below it" in folder.err


def test_a_worker_that_drains_says_how_far_it_is(home: Home, tmp_path: Path) -> None:
    """On a terminal, by passages, and it reads no files."""
    home.run("add", vault(tmp_path / "vault", 300), "--no-wait")
    code, shown = on_terminal([KB, "--home", str(home.root), "worker", "--drain"])
    assert code == 0
    assert re.search(r"[\d,]+ of [\d,]+\+? passages", shown)
    assert "reading" not in shown
    assert "0 jobs left, 0 failed" in shown
