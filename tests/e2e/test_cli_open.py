"""`kb open`: what it runs for a file, a passage and a page."""

import http.server
import stat
import threading
from pathlib import Path

import pytest
from commands import Home, Ran, surroundings

LINES = "\n".join(f"The boiler number {n} in the cellar is serviced in May." for n in range(80))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A note of many passages under front matter."""
    note = tmp_path / "a note.md"
    note.write_text(f"---\ntags: [house]\n---\n# Boilers\n\n{LINES}\n\nThe samovar sings.\n")
    home = Home(tmp_path / "home")
    assert home.run("add", note).code == 0
    return home


def opened(home: Home, *args: str, **env: str | None) -> Ran:
    return home.run("open", *args, env=surroundings(**{"VISUAL": None, "EDITOR": None} | env))


def last_passage(home: Home) -> str:
    return str(home.run("show", home.ids()["a note.md"], "--json").json["passages"][-1]["chunk_id"])


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def first_line(home: Home, chunk_id: str) -> int:
    """The line of the file in which a passage starts."""
    start = home.run("show", chunk_id, "--json").json["passage"]["text"].split("\n")[0]
    lines = (home.root.parent / "a note.md").read_text().split("\n")
    return lines.index(start) + 1


@pytest.mark.parametrize(
    ("editor", "shown"),
    [
        ("vim", "vim +{line} '{file}'"),
        ("emacsclient -nw", "emacsclient -nw +{line} '{file}'"),
        ("/usr/bin/nano", "/usr/bin/nano +{line} '{file}'"),
        ("code --wait", "code --wait --goto '{file}:{line}'"),
        ("subl -w", "subl -w '{file}:{line}'"),
        ("hx", "hx '{file}:{line}'"),
        ("my-editor", "my-editor '{file}'"),
    ],
)
def test_an_editor_is_told_the_line_in_its_own_way(home: Home, editor: str, shown: str) -> None:
    """The line is that of the file, its front matter counted."""
    chunk_id = last_passage(home)
    line, file = first_line(home, chunk_id), home.root.parent / "a note.md"
    assert line > 20
    ran = opened(home, chunk_id, "--print", EDITOR=editor)
    assert (ran.code, ran.out) == (0, shown.format(line=line, file=file) + "\n")


def test_visual_goes_before_editor_and_is_run(home: Home, tmp_path: Path) -> None:
    """The program gets the file as one word, whatever blanks are in its name."""
    vim = script(tmp_path / "vim", f'printf "%s|" "$@" > {tmp_path}/got')
    assert opened(home, home.ids()["a note.md"], VISUAL=f"{vim} -R", EDITOR="false").code == 0
    assert (tmp_path / "got").read_text() == f"-R|{tmp_path}/a note.md|"


@pytest.mark.parametrize(
    ("editor", "message"),
    [
        ("false", "kb: false ended with exit code 1\n"),
        ("no-such-program", "kb: no-such-program cannot be run (No such file or directory); "),
        ("'vim", "kb: EDITOR has an unclosed quote: 'vim\n"),
    ],
)
def test_an_editor_that_fails_is_named(home: Home, editor: str, message: str) -> None:
    """The exit code is 1."""
    ran = opened(home, home.ids()["a note.md"], EDITOR=editor)
    assert ran.code == 1
    assert ran.err.startswith(message)


def test_without_an_editor_the_desktop_opens_the_file(home: Home, tmp_path: Path) -> None:
    """By xdg-open, and where there is none an error says what to do."""
    (tmp_path / "bin").mkdir()
    file = tmp_path / "a note.md"
    ident = home.ids()["a note.md"]
    none = opened(home, ident, PATH=str(tmp_path / "bin"))
    assert none.code == 1
    assert none.err == (
        f"kb: no program here opens {file}; set EDITOR for files, or install xdg-open\n"
    )
    script(tmp_path / "bin" / "xdg-open", "exit 0")
    ran = opened(home, ident, "--print", PATH=str(tmp_path / "bin"))
    assert ran.out == f"xdg-open '{file}'\n"


def test_a_page_is_opened_in_the_browser(home: Home, tmp_path: Path) -> None:
    """By its URL, also where there is an editor."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>Tea</title><p>Green tea is brewed at 70 degrees.</p>")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/tea"
        added = home.run("--cfg", 'fetch.allow=["127.0.0.1"]', "add", url)
        server.shutdown()
    assert added.code == 0, added.err
    rows = home.run("ls", "--json").json["docs"]
    ident = next(row["doc_id"] for row in rows if row["source"] == url)
    script(tmp_path / "xdg-open", "exit 0")
    ran = opened(home, ident, "--print", EDITOR="vim", PATH=str(tmp_path))
    assert ran.out == f"xdg-open {url}\n"


def test_a_source_that_is_gone_is_named_and_what_is_kept_is_offered(home: Home) -> None:
    """So is a text from standard input, which never was a file."""
    ident = home.ids()["a note.md"]
    file = home.root.parent / "a note.md"
    file.unlink()
    gone = opened(home, ident, EDITOR="vim")
    assert (gone.code, gone.err) == (
        4,
        f"kb: {file} is gone; `kb show {ident}` shows what kb keeps of it\n",
    )
    home.run("add", "-", stdin="Fish swim.")
    piped = home.ids()["-"]
    ran = opened(home, piped, EDITOR="vim")
    assert ran.code == 4
    assert ran.err.startswith("kb: it has no file and no page; ")


def test_a_file_that_changed_is_opened_with_a_warning(home: Home) -> None:
    """The line is that of the file as it was read."""
    chunk_id = last_passage(home)
    with (home.root.parent / "a note.md").open("a") as file:
        file.write("One more.\n")
    ran = opened(home, chunk_id, "--print", EDITOR="vim")
    assert ran.code == 0
    assert ran.err == (
        "kb: the file has changed since kb read it, so that the line may be another\n"
    )
