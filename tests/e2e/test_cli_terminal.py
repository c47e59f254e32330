"""On a terminal and off it: colours, links, bars, questions, Ctrl-C and readers that leave."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from commands import KB, Home, run, surroundings
from http_server import serving
from kb_cli.output import cells
from terminal import on_terminal

from kb.errors import KbError
from kb.store.store import Store

LONG = "\n\n".join(
    f"Paragraph {n} speaks of kettles, leaves, water and the patience of people who wait for it."
    for n in range(40)
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("terminal")
    notes = folder / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 70 degrees.\n")
    (notes / "long.md").write_text(f"# Long\n\n{LONG}\n\nThen the samovar sings.\n")
    (notes / "e\033[31mvil\n\u202ename.md").write_text("wicked \033]0;owned\a words \u202e here")
    home = Home(folder / "home")
    home.run("add", "-r", notes)
    return home


def test_a_terminal_gets_marks_and_links(home: Home) -> None:
    """On a terminal the words found are coloured and the path is a link to the file."""
    code, shown = on_terminal(home.argv("search", "brewed tea", "-k", "1"))
    assert code == 0
    assert "\033[33m\033[1mbrewed\033[0m" in shown
    assert re.search(r"\033\]8;;file:///\S+/tea\.md\033\\\S+/tea\.md:1\033\]8;;\033\\", shown)


def test_a_pipe_gets_neither(home: Home) -> None:
    """Off a terminal there is no escape sequence, on either stream."""
    for args in (["search", "tea"], ["ls"], ["stats"], ["show", home.ids()["tea.md"]]):
        ran = home.run(*args)
        assert "\033" not in ran.out + ran.err


def test_no_color(home: Home) -> None:
    """NO_COLOR takes the colours, not the words."""
    _, shown = on_terminal(home.argv("search", "brewed tea", "-k", "1"), NO_COLOR="1")
    assert "\033[" not in shown
    assert "brewed" in shown


def test_documents_cannot_drive_the_terminal(home: Home) -> None:
    """What a document or its name holds of control characters never reaches the terminal."""
    for args in (["search", "wicked"], ["ls"], ["show", next(iter(home.ids().values()))]):
        _, shown = on_terminal(home.argv(*args), NO_COLOR="1")
        assert "\033[" not in shown
        assert "\033]0" not in shown
        assert "\a" not in shown
        assert "\u202e" not in shown
    ran = home.run("ls")
    assert len(ran.out.splitlines()) == 6


def test_the_snippet_stands_around_the_words(home: Home) -> None:
    """Of a long passage the rows with the words are shown, with marks where text is left out."""
    ran = home.run("search", "samovar sings", "-k", "1", "--mode", "lexical")
    passage = ran.out.splitlines()[2:]
    assert any("samovar sings" in line for line in passage)
    assert passage[0].startswith("    … ")
    assert len([line for line in passage if line.strip()]) == 5


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_narrow_terminals(home: Home, columns: int) -> None:
    """Rows of a passage fit the terminal, and are no wider than is good to read."""
    ran = home.run("search", "kettles", "-k", "1", env=surroundings(COLUMNS=str(columns)))
    rows = ran.out.splitlines()[2:]
    assert max(map(len, rows)) <= min(columns, 104)


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_ls_fits_the_terminal(home: Home, columns: int) -> None:
    """A line for each doc, in columns, with the end of its path; a pipe gets the whole of it."""
    _, shown = on_terminal(home.argv("ls"), COLUMNS=str(columns), NO_COLOR="1")
    plain = re.sub(r"\033\]8;;.*?\033\\", "", shown)
    rows = plain.splitlines()
    assert len(rows) == 3
    assert max(map(cells, rows)) <= columns
    (tea,) = (row for row in rows if "  Tea  " in row)
    assert tea.endswith("/tea.md")
    assert tea.startswith(home.ids()["tea.md"][:9])
    assert f"{'':9}  {home.root.parent / 'notes' / 'tea.md'}\n" in home.run("ls").out
    _, narrow = on_terminal(home.argv("ls"), COLUMNS="40", NO_COLOR="1")
    assert len(narrow.splitlines()) == 6


def test_config_fits_the_terminal(home: Home) -> None:
    """A long default is cut there, and whole in a pipe; what somebody has set is whole."""
    long = "x" * 90
    argv = home.argv("--cfg", f"llm.model={long}", "config")
    _, shown = on_terminal(argv, COLUMNS="60", NO_COLOR="1")
    rows = shown.splitlines()
    (extensions,) = (row for row in rows if row.startswith("ingest.extensions = "))
    assert (cells(extensions), extensions[-1]) == (60, "…")
    assert f'llm.model = "{long}"  (--cfg)' in rows
    assert '"zip"' in next(
        row for row in run(argv).out.splitlines() if row.startswith("ingest.extensions = ")
    )


def test_add_shows_a_bar_on_a_terminal_alone(tmp_path: Path) -> None:
    """The bar, with rate and time to go, is on standard error and only on a terminal."""
    home, note = Home(tmp_path / "home"), tmp_path / "a.md"
    note.write_text("one")
    code, shown = on_terminal(home.argv("add", note))
    assert code == 0
    assert "reading" in shown
    assert "1 added of 1 scanned" in shown
    note.write_text("two")
    ran = home.run("add", note)
    assert ran.err == ""
    assert ran.out == "1 updated of 1 scanned\n"


def test_a_server_shows_on_a_terminal_what_a_home_does(home: Home, tmp_path: Path) -> None:
    """The same colours and links by the socket and by --server; and a bar for what is handed in."""
    here = on_terminal(home.argv("search", "samovar"))
    with serving(home) as server:
        assert on_terminal(home.argv("search", "samovar")) == here
        far = [KB, "--server", f"http://127.0.0.1:{server.port}"]
        assert on_terminal([*far, "search", "samovar"]) == here
    other = Home(tmp_path / "home")
    (tmp_path / "a.md").write_text("one")
    with serving(other) as server:
        far = [KB, "--server", f"http://127.0.0.1:{server.port}"]
        code, shown = on_terminal([*far, "add", str(tmp_path / "a.md")])
    assert code == 0
    assert "reading" in shown
    assert "indexing" in shown
    assert "1 added of 1 scanned" in shown


def test_stdin_on_a_terminal_says_how_to_end(tmp_path: Path) -> None:
    """`kb add -` on a terminal says that it waits, and for what."""
    home = Home(tmp_path / "home")
    code, shown = on_terminal(home.argv("add", "-"), typed=b"typed tea\n\x04\x04")
    assert code == 0
    assert "end with Ctrl-D" in shown
    assert "1 added" in shown


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 6, 1), (b"y\n", 0, 0)])
def test_rm_asks_on_a_terminal(tmp_path: Path, answer: bytes, code: int, left: int) -> None:
    """On a terminal removal is asked for; no is held back, yes is done."""
    home, note = Home(tmp_path / "home"), tmp_path / "a.md"
    note.write_text("one")
    home.run("add", note)
    ended, shown = on_terminal(home.argv("rm", home.ids()["a.md"]), typed=answer)
    assert ended == code
    assert "Remove 1 doc?" in shown
    assert len(home.ids()) == left


def test_json_on_a_terminal_is_indented(home: Home) -> None:
    """For a person JSON is laid out; for a pipe it is one line."""
    _, shown = on_terminal(home.argv("ls", "--json"))
    assert shown.startswith('{\r\n  "docs"')
    assert home.run("ls", "--json").out.count("\n") == 1


@pytest.mark.parametrize("args", [["search", "tea"], ["ls"], ["--help"], ["export"], ["stats"]])
def test_a_reader_that_leaves(home: Home, args: list[str]) -> None:
    """When the reader of the output has gone, nothing is said of it."""
    if args == ["export"]:
        args = ["export", home.ids()["long.md"], "--to", "-"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        home.argv(*args), stdout=write_end, stderr=subprocess.PIPE, env=surroundings()
    )
    os.close(write_end)
    assert done.stderr == b""
    assert done.returncode == 0 or args == ["--help"]


@pytest.mark.parametrize("args", [("ls",), ("ls", "--json"), ("stats",), ("--help",)], ids=" ".join)
def test_a_full_output_is_not_a_full_home(home: Home, args: tuple[str, ...]) -> None:
    """It is said that the output could not be written, and nothing of the disk of the home."""
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            home.argv(*args), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    why = "the output could not be written: No space left on device"
    assert (ran.returncode, ran.stderr) == (1, f"kb: {why}; what was committed is kept\n")


def test_closed_streams(home: Home) -> None:
    """A closed standard stream is no error, and no file of the store takes its place."""
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        command = " ".join(home.argv("search", "tea", "--json"))
        assert run(["sh", "-c", f"{command} {closing}"]).code == 0
    assert home.run("check").code == 0


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("note", "add"), 2, "kb: the note is empty\n"),
        (("add", "-"), 3, "kb: failed: -: it is empty\nkb: 1 of 1 source failed\n"),
        (("rm", "tea.md"), 6, "kb: 1 doc would be removed; add --yes to do it\n"),
    ],
)
def test_a_closed_standard_input_is_an_empty_one(
    home: Home, args: tuple[str, ...], code: int, said: str
) -> None:
    """What reads it or would ask there says so."""
    ran = run(["sh", "-c", f"{' '.join(home.argv(*args))} <&-"])
    assert ran.code == code
    assert ran.err.endswith(said)


def test_a_plain_terminal_gets_plain_text(home: Home) -> None:
    """Where TERM is dumb, there are no escape sequences at all."""
    for args in (("search", "brewed tea"), ("ls",), ("facets",), ("show", "tea.md")):
        _, shown = on_terminal(home.argv(*args), TERM="dumb")
        assert "\033" not in shown, args


def test_without_home_folder_or_terminal(tmp_path: Path) -> None:
    """As cron runs it: hardly any environment, no terminal, input from nowhere."""
    note = tmp_path / "a.md"
    note.write_text("cron tea")
    bare = {"PATH": "/usr/bin:/bin"}
    home = Home(tmp_path / "home")
    added = run(home.argv("add", note, "--json"), env=bare)
    assert (added.code, added.err) == (0, "")
    assert run(home.argv("search", "tea", "--json"), env=bare).json["hits"]
    latin = {**bare, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    note.write_text("Teekanne für 茶")
    assert run(home.argv("add", note), env=latin).code == 0
    shown = run(home.argv("search", "teekanne"), env=latin)
    assert shown.code == 0
    assert "Teekanne" in shown.out


def vectors(home: Home) -> int:
    """Vectors that are committed by now."""
    try:
        with (
            Store.open(home.root / "store", create=False, read_only=True) as store,
            store.read() as txn,
        ):
            return txn.count("vectors")
    except KbError:
        return 0


@pytest.mark.parametrize("moment", ["reading", "embedding"])
def test_ctrl_c(tmp_path: Path, moment: str) -> None:
    """Ctrl-C ends `kb add` soon, even while the model works: 130, what was committed is kept.

    The message says how to go on, and going on finds nothing lost.
    """
    home, notes = Home(tmp_path / "home"), tmp_path / "n"
    notes.mkdir()
    for n in range(400):
        text = " ".join(f"word{n}x{m}" for m in range(40 if moment == "embedding" else 4))
        (notes / f"{n:03}.md").write_text(f"# Note {n}\n\n{text}\n")
    child = subprocess.Popen(
        [KB, "--home", str(home.root), "add", "-r", str(notes)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings(),
        text=True,
    )
    deadline = time.monotonic() + 120
    md = home.root / "md" / "file"
    while time.monotonic() < deadline and child.poll() is None:
        if moment == "reading" and md.is_dir() and len(list(md.iterdir())) > 20:
            break
        if moment == "embedding" and vectors(home) > 0:
            break
        time.sleep(0.01)
    assert child.poll() is None, "it ended before it could be interrupted"
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert out == ""
    assert time.monotonic() - sent < 60
    assert "Traceback" not in err
    assert "what was committed is kept" in err
    assert "run the same command again" in err or "kb worker --drain" in err
    kept = len(home.run("ls", "--json", "--limit", "0").json["docs"])
    again = home.run("add", "-r", notes, "--no-wait", "--json")
    assert again.code == 0
    assert again.json["unchanged"] == kept
    assert again.json["added"] == 400 - kept
    # With the model that was at work: for another one every vector is missing.
    assert run([KB, "--home", home.root, "check"]).code == 0


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_worker_works_until_it_is_stopped(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    """`kb worker` takes up what others add, and ends soon when told to: SIGTERM is no error."""
    home, note = Home(tmp_path / "home"), tmp_path / "a.md"
    home.root.mkdir()
    child = subprocess.Popen(
        home.argv("worker"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings()
    )
    assert child.stderr is not None
    assert b"at work" in child.stderr.readline()
    note.write_text("words for the worker")
    home.run("add", note, "--no-wait")
    deadline = time.monotonic() + 120
    while vectors(home) == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    began = time.monotonic()
    child.send_signal(sent)
    child.communicate(timeout=120)
    assert child.returncode == code
    assert time.monotonic() - began < 60
    assert home.run("search", "worker", "--json").json["hits"]


def test_verbose_says_more_on_standard_error(home: Home) -> None:
    """-v names the home and, of an error, the place in the program; output stays as it is."""
    plain = home.run("search", "tea", "--json")
    argv = home.argv("search", "tea", "--json")
    said = run([argv[0], "-v", *argv[1:]])
    assert said.out == plain.out
    assert str(home.root) in said.err
    failed = run([argv[0], "-v", "--home", str(home.root), "show", "d0000"])
    assert failed.code == 4
    assert "Traceback" in failed.err


def test_a_note_drives_no_terminal(tmp_path: Path) -> None:
    """`kb note get` escapes what it shows, and hands it on byte for byte to what is no terminal."""
    book = Home(tmp_path / "home")
    text = "A note \033]0;owned\a with words \u202e here.\n"
    placed = book.run("note", "add", "--wait", stdin=text.encode()).out.strip()
    code, shown = on_terminal(book.argv("note", "get", placed))
    assert code == 0
    assert "A note" in shown
    assert not any(char in shown for char in ("\033", "\a", "\u202e"))
    assert text in book.run("note", "get", placed).out
