"""`kb --server` against what is no kb server: bounded, in words, and no token goes astray."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import loopback
import pytest
from certificates import certificate, speaking
from commands import KB, Home, Ran, run, surroundings
from http_server import serving
from loopback import Answer, LoopbackServer

SECRET = "kb_" + "S" * 43
JSON = {"Content-Type": "application/json"}
PROBLEM = {"Content-Type": "application/problem+json"}
SEARCH = "/v1/search"


@pytest.fixture
def site() -> Iterator[LoopbackServer]:
    with loopback.serving() as server:
        yield server


def search(url: str, *options: str, token: str | None = SECRET) -> Ran:
    argv = [KB, *options, "--server", url, "search", "oak", "--json"]
    return run(argv, env=surroundings(KB_TOKEN=token))


def test_nobody_is_there() -> None:
    """A line that says so, and what to look at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ran = search(f"http://127.0.0.1:{port}")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be reached" in ran.err
    assert search("http://no-such-host.invalid", token=None).code == 1


def test_a_server_that_goes_away_meanwhile(tmp_path: Path) -> None:
    """A command that it no longer answers says so; what was taken in is kept."""
    home = Home(tmp_path / "home")
    (tmp_path / "a.md").write_text("# A")
    with serving(home) as server:
        url = f"http://127.0.0.1:{server.port}"
        assert run([KB, "--server", url, "add", tmp_path / "a.md"]).code == 0
        server.process.kill()
        server.process.wait()
        ran = run([KB, "--server", url, "add", tmp_path / "a.md"])
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be reached" in ran.err
    assert len(home.ids()) == 1


def test_what_a_server_says_cannot_drive_the_terminal(site: LoopbackServer) -> None:
    """One line, whatever is in it, without a traceback and without the token."""
    said = b'{"code": "other", "detail": "\\u001b[31mred\\nblue"}'
    site.routes[SEARCH] = Answer(said, 400, PROBLEM)
    ran = search(site.url(""))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"kb: {site.url('')}: \\x1b[31mred\\x0ablue\n"


def test_a_token_goes_over_tls() -> None:
    """Without it only where `client.insecure` says so; an address that is none is a usage error."""
    for args in (("http://kb.invalid",), ("ftp://localhost",)):
        assert search(*args).code == 2
    assert search("http://kb.invalid", "--cfg", "client.insecure=true").code == 1


def test_a_token_is_not_for_the_command_line() -> None:
    """Arguments are for everybody on the machine to see; it is not repeated either."""
    for said in (f"client.token={SECRET}", f'client={{token="{SECRET}"}}'):
        ran = search("http://localhost:1", "--cfg", said, token=None)
        assert (ran.code, ran.out) == (2, "")
        assert "KB_TOKEN" in ran.err
        assert SECRET not in ran.err


def test_the_token_of_the_settings_is_for_their_server(
    site: LoopbackServer, tmp_path: Path
) -> None:
    """Another server that is named by hand is not shown it."""
    (tmp_path / "kb").mkdir()
    written = f'[client]\nserver = "{site.url("")}"\ntoken = "{SECRET}"\n'
    (tmp_path / "kb" / "config.toml").write_text(written)
    env = surroundings(XDG_CONFIG_HOME=str(tmp_path))
    with loopback.serving() as other:
        run([KB, "search", "oak"], env=env)
        run([KB, "--server", other.url(""), "search", "oak"], env=env)
        assert [one.headers["authorization"] for one in site.requests] == [f"Bearer {SECRET}"]
        assert [one.headers["authorization"] for one in other.requests] == [None]


def test_a_certificate_must_hold(tmp_path: Path) -> None:
    """Over https only a server whose certificate is trusted is shown the token."""
    path = certificate(tmp_path, "localhost")
    with loopback.serving(speaking(path)) as site:
        site.routes[SEARCH] = Answer(b'{"code": "held_back", "detail": "so"}', 400, PROBLEM)
        url = site.url("", host="localhost")
        refused = search(url)
        assert (refused.code, refused.out, site.requests) == (1, "", [])
        assert "certificate is not valid" in refused.err
        env = surroundings(KB_TOKEN=SECRET, SSL_CERT_FILE=str(path))
        assert run([KB, "--server", url, "search", "oak"], env=env).code == 6
        assert len(site.requests) == 1


def test_a_wrong_token_is_told(tmp_path: Path) -> None:
    """Exit code 1, and what to set; the right one opens."""
    home = Home(tmp_path / "home")
    secret = home.run("token", "add", "mine", "--role", "reader").out.split()[0]
    with serving(home) as server:
        url = f"http://127.0.0.1:{server.port}"
        for wrong in (None, SECRET):
            ran = search(url, token=wrong)
            assert (ran.code, ran.out) == (1, "")
            assert "KB_TOKEN" in ran.err
        assert search(url, token=secret).code == 0
        reader = run([KB, "--server", url, "note", "add", "x"], env=surroundings(KB_TOKEN=secret))
        assert (reader.code, reader.out) == (1, "")
        assert "writer" in reader.err


def test_events_that_do_not_come_are_asked_for(tmp_path: Path) -> None:
    """Where a stream breaks off at once, the state is asked for until it is over."""
    home = Home(tmp_path / "home")
    (tmp_path / "a.md").write_text("# A\n\nThe walrus.")
    with serving(home) as server, without_events(server.port) as port:
        url = f"http://127.0.0.1:{port}"
        ran = run([KB, "--server", url, "add", tmp_path / "a.md", "--json"])
        assert (ran.code, ran.json["added"]) == (0, 1), ran.err
        assert server.get("/v1/docs").json["docs"][0]["indexed"]


@contextlib.contextmanager
def without_events(port: int) -> Iterator[int]:
    """A proxy to a server that lets every stream of events break off."""

    def carry(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            asked = client.recv(65_536)
            if asked.startswith(b"GET /v1/events"):
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
                return
            server.sendall(asked)
            head, _, body = asked.partition(b"\r\n\r\n")
            size = next(
                int(line.split(b":")[1])
                for line in [*head.lower().split(b"\r\n"), b"content-length: 0"]
                if line.startswith(b"content-length:")
            )
            while len(body) < size:
                part = client.recv(65_536)
                body += part
                server.sendall(part)
            while part := server.recv(65_536):
                client.sendall(part)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=carry, args=(client,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
