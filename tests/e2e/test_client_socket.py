"""`kb search` beside `kb serve`: answered over the socket in the home, and by itself where not."""

import json
import socket
import stat
import threading
import time
from pathlib import Path

import pytest
from commands import HASHING, KB, Home, Ran, loaded, run, surroundings
from http_server import ConfiguredHome, Running, serving

from kb.store.content.layout import HomePaths

ASKED = ("search", "oak", "--json")
ANSWERED = b'route="/v1/search",method="POST",status="200"'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("socket")
    (folder / "boat.md").write_text("# Boat\n\nThe keel is made of oak.")
    made = Home(folder / "home")
    assert made.run("add", folder / "boat.md").code == 0
    return made


@pytest.fixture(scope="module")
def known(home: Home) -> Ran:
    """What a search says where no server runs."""
    return home.run(*ASKED)


def place(home: Home) -> Path:
    return HomePaths(home.root).socket


def is_asked(server: Running, home: Home, *options: str) -> bool:
    """Whether the server answers a search with these options, which is whole in any case."""
    before = metrics(server)
    ran = ConfiguredHome(home.root, options).run(*ASKED)
    assert (ran.code, ran.json["hits"][0]["title"]) == (0, "Boat")
    counted = [line for line in metrics(server).splitlines() if ANSWERED in line]
    return counted != [line for line in before.splitlines() if ANSWERED in line]


def metrics(server: Running) -> bytes:
    return server.get("/metrics").body


def test_the_socket_is_for_its_user_alone(home: Home) -> None:
    """The folder is 0700 and the socket 0600; it goes when the server ends."""
    with serving(home) as server:
        assert stat.S_IMODE(place(home).parent.stat().st_mode) == 0o700
        found = place(home).stat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert server.stop()[0] == 0
    assert not place(home).exists()


def test_it_asks_as_the_operator(home: Home) -> None:
    """Tokens close the address, and not the socket: whoever opens it has the files anyway."""
    assert home.run("token", "add", "t").code == 0
    with serving(home) as server:
        assert server.get("/v1/docs").status == 401
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(place(home)))
            peer.sendall(b"GET /v1/docs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            answer = b""
            while part := peer.recv(65_536):
                answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["total"] == 1
    assert home.run("token", "rm", "t").code == 0


def test_a_search_by_it_loads_nothing_heavy(home: Home, known: Ran) -> None:
    """No index, no model, no client of HTTP is imported; without the server they are."""
    heavy = {"numpy", "tantivy", "lmdb", "onnxruntime", "tokenizers", "httpx", "http", "ssl"}
    args = ["--home", str(home.root), *HASHING, *ASKED]
    with serving(home):
        assert loaded(*args) & heavy == set()
        assert loaded(*args[:-1]) & heavy == set()
    assert {"numpy", "tantivy", "lmdb"} <= loaded(*args)
    assert known.code == 0


def test_other_settings_are_searched_by_themselves(home: Home) -> None:
    """What another model or setting would find is found where it is asked, and so with -v."""
    with serving(home) as server:
        assert is_asked(server, home)
        assert is_asked(server, home, "--cfg", "compact.grace_min=7")
        assert not is_asked(server, home, "--cfg", "search.candidates=5")
        assert not is_asked(server, home, "-v")


def test_what_a_killed_server_left_is_replaced(home: Home, known: Ran) -> None:
    """A search past a dead socket is as ever, and the next server takes its place."""
    with serving(home) as server:
        server.process.kill()
        server.process.wait()
        assert place(home).exists()
        assert home.run(*ASKED) == known
    with serving(home) as again:
        assert is_asked(again, home)


def test_a_second_server_leaves_it_alone(home: Home, known: Ran) -> None:
    """The first one keeps the socket, and it is there still when the second has ended."""
    with serving(home) as first, serving(home) as second:
        assert second.stop()[0] == 0
        assert home.run(*ASKED) == known
        assert b"/v1/search" in metrics(first)


def test_a_home_too_deep_for_a_socket_is_served_without(tmp_path: Path, known: Ran) -> None:
    """It says so once, and answers all the same."""
    deep = Home(tmp_path / ("deep" * 30) / "home")
    (tmp_path / "a.md").write_text("# A\n\noak")
    assert deep.run("add", tmp_path / "a.md").code == 0
    with serving(deep) as server:
        assert server.get("/v1/docs").json["total"] == 1
        ran = deep.run(*ASKED)
        assert (ran.code, ran.err) == (0, "")
        assert "too long for a socket" in server.stop()[1]
    assert not place(deep).exists()
    assert known.code == 0


def answers(body: bytes, status: bytes = b"200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, size, body)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"nothing\r\n\r\n",
        answers(b"{}"),
        answers(b"not json"),
        answers(b'{"result": {}}', length=5),
        answers(b"{}", b"404 Not Found"),
        answers(b"{}", b"409 Conflict"),
        None,
    ],
    ids=range(8),
)
def test_a_wrong_or_hung_server_is_passed_over(home: Home, known: Ran, said: bytes | None) -> None:
    """An older one, one that talks nonsense, one that hangs: the search is done without a word."""
    with _Listening(place(home), said):
        began_s = time.monotonic()
        assert home.run(*ASKED) == known
        assert time.monotonic() - began_s < 60


class _Listening:
    """A server at a home's socket that says what it is told; with None it only listens."""

    def __init__(self, path: Path, said: bytes | None) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.unlink(missing_ok=True)
        self._path, self._said = path, said
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        try:
            peer, _ = self._socket.accept()
        except OSError:
            return
        with peer:
            peer.recv(65_536)
            if self._said is not None:
                peer.sendall(self._said)
            else:
                peer.recv(1)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)
        self._path.unlink()


def test_two_homes_are_searched_together_without_it(tmp_path: Path) -> None:
    """A server has one home; where the project's and the user's are read, both are."""
    (tmp_path / "mine.md").write_text("# Mine\n\nAn oak.")
    (tmp_path / "ours.md").write_text("# Ours\n\nAn oak, too.")
    (tmp_path / ".kb").mkdir()
    env = surroundings(XDG_DATA_HOME=str(tmp_path / "data"))
    mine, ours = Home(tmp_path / "data" / "kb"), Home(tmp_path / ".kb")
    assert mine.run("add", tmp_path / "mine.md", env=env).code == 0
    assert ours.run("add", tmp_path / "ours.md", env=env).code == 0
    with serving(ours, env=env) as server:
        ran = run([KB, *HASHING, *ASKED], env=env, cwd=tmp_path)
        assert {hit["source_space"] for hit in ran.json["hits"]} == {"project", "user"}
        assert b"/v1/search" not in metrics(server)


def test_what_is_added_is_found_at_once(home: Home, tmp_path: Path) -> None:
    """The server sees what another process commits, and so does a search by it."""
    (tmp_path / "new.md").write_text("# New\n\nA zither.")
    with serving(home):
        assert home.run("search", "zither", "--mode", "lexical", "--json").json["hits"] == []
        assert home.run("add", tmp_path / "new.md").code == 0
        found = home.run("search", "zither", "--mode", "lexical", "--json").json["hits"]
        assert [hit["title"] for hit in found] == ["New"]
        assert home.run("rm", found[0]["doc_id"], "--yes").code == 0


def test_a_backup_has_no_socket(home: Home, tmp_path: Path) -> None:
    """What says that a server runs is of this moment, and is not copied."""
    with serving(home):
        assert home.run("backup", "create", "--to", tmp_path / "copy").code == 0
        assert home.run("check").code == 0
    assert (tmp_path / "copy" / "home" / "store").is_dir()
    assert not (tmp_path / "copy" / "home" / "run").exists()
