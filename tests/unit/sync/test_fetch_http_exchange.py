"""Encryption, the library's own errors, and what is loaded when."""

import inspect
import socket
import subprocess
import sys
import threading
from pathlib import Path

import certifi
import httpcore
import pytest
from certificates import certificate, speaking
from loopback import HOST, Answer, moved, serving

from kb.errors import Permanent, Refused, SourceError, Transient
from kb.intake.sync.fetch import Fetcher, FetchSettings
from kb.intake.sync.http_exchange import _NETWORK_ERRORS, source_error_of
from kb.model.clock import SystemClock
from kb.model.deadline import Deadline

NAMED = "page.example"


def fetcher(**settings) -> Fetcher:
    allowed = FetchSettings(allow=("127.0.0.0/8",), **settings)
    return Fetcher(allowed, SystemClock(), lambda _host, _port: (HOST,))


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for NAMED, which is trusted."""
    path = certificate(tmp_path, NAMED)
    monkeypatch.setattr(certifi, "where", lambda: str(path))
    return path


def test_a_certificate_is_checked_against_the_name(trusted: Path) -> None:
    """The connection goes to the address, the certificate has to be the name's."""
    with serving(speaking(trusted)) as server:
        server.routes["/"] = Answer(b"a page")
        assert fetcher().get(server.url("/", NAMED)).data == b"a page"
        with pytest.raises(Refused, match=r"certificate is not valid .*[Mm]ismatch"):
            fetcher().get(server.url("/", "other.example"))
        with pytest.raises(Refused, match="certificate is not valid"):
            fetcher().get(server.url("/"))
        assert server.paths() == ["/"]


def test_a_certificate_nobody_vouches_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A self-signed page is not fetched, and the environment cannot make it trusted."""
    path = certificate(tmp_path, NAMED)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with serving(speaking(path)) as server:
        with pytest.raises(Refused, match=r"certificate is not valid \(self"):
            fetcher().get(server.url("/", NAMED))
        assert server.paths() == []


def test_a_certificate_that_has_ended_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expired is expired, also where the issuer is trusted."""
    path = certificate(tmp_path, NAMED, days=-1)
    monkeypatch.setattr(certifi, "where", lambda: str(path))
    with serving(speaking(path)) as server, pytest.raises(Refused, match="expired"):
        fetcher().get(server.url("/", NAMED))


def test_encryption_is_not_given_up(trusted: Path) -> None:
    """A redirect from https to http is refused before anything is sent in the clear."""
    with serving(speaking(trusted)) as server, serving() as plain:
        server.routes["/"] = moved(plain.url("/", NAMED))
        with pytest.raises(Refused, match="not encrypted"):
            fetcher().get(server.url("/", NAMED))
        assert plain.connections == 0
        plain.routes["/"] = moved(server.url("/up", NAMED), 301)
        server.routes["/up"] = Answer(b"a page")
        assert fetcher().get(plain.url("/", NAMED)).permanent_url == server.url("/up", NAMED)


def test_a_server_that_does_not_encrypt_is_permanent() -> None:
    """An address with https where http is spoken does not get better by itself."""
    with serving() as server:
        url = server.url("/", NAMED).replace("http:", "https:")
        with pytest.raises(Permanent, match="could not agree on an encrypted connection"):
            fetcher().get(url)


def test_a_handshake_that_hangs_ends_at_the_deadline() -> None:
    """A server that accepts and says nothing holds no call beyond its time."""
    with serving() as server:
        server.socket.listen(1)
        url = server.url("/", NAMED).replace("http:", "https:")
        server.RequestHandlerClass = lambda *_args: server.stopping.wait(240)  # type: ignore[assignment]
        with pytest.raises(Transient, match=r"not finished within 0\.2 s"):
            fetcher(total_s=0.2).get(url)


def test_every_error_of_the_library_has_a_meaning() -> None:
    """Whatever the library raises becomes a SourceError of one line."""
    raised = [
        kind
        for _, kind in inspect.getmembers(httpcore, inspect.isclass)
        if issubclass(kind, Exception)
    ]
    assert len(raised) >= 14
    for kind in raised:
        assert issubclass(kind, _NETWORK_ERRORS), kind
        error = source_error_of(kind("SECRET\n"), Deadline(SystemClock(), 10), "http://h/")
        assert isinstance(error, SourceError)
        assert "SECRET" not in str(error)


def test_ipv6_literals_are_connected_to() -> None:
    """A literal goes to the socket as it is, and into the Host header in brackets."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 loopback here")
    heads: list[bytes] = []
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listening:

        def serve() -> None:
            client, _ = listening.accept()
            with client:
                heads.append(client.recv(65_536))
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

        thread = threading.Thread(target=serve)
        thread.start()
        port = listening.getsockname()[1]
        allowed = FetchSettings(allow=("::1",))
        assert Fetcher(allowed, SystemClock()).get(f"http://[0::1]:{port}/").data == b"x"
        thread.join()
    assert f"Host: [::1]:{port}\r\n".encode() in heads[0]


@pytest.mark.parametrize(
    "module", ["kb.intake.sync.add", "kb.intake.sync.fetch", "kb.intake.sync.url"]
)
def test_the_network_is_loaded_when_it_is_used(module: str) -> None:
    """Importing the room loads no HTTP library; a fetcher can be made without one, too."""
    code = (
        f"import sys, {module}\n"
        "from kb.intake.sync.fetch import Fetcher, FetchSettings\n"
        "from kb.model.clock import SystemClock\n"
        "Fetcher(FetchSettings(), SystemClock())\n"
        "print(sorted({'httpx', 'httpcore', 'h11', 'idna', 'certifi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[]\n", "")
