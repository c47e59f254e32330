"""Encryption: certificates that hold or do not, and the deadline over an encrypted connection."""

import time
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from certificates import certificate, speaking
from llm_server import LlmServer, llm_serving
from loopback import dripping

from kb.errors import ModelRejected, ModelUnavailable
from kb.intake.model_server.http_client import _tls
from kb.knowledge.llm import Timing


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LlmServer]:
    """A server that shows a certificate for localhost, signed by itself."""
    with llm_serving("anthropic", speaking(certificate(tmp_path, "localhost"))) as running:
        yield running


@pytest.fixture
def trusted(tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The certificate is among the roots."""
    monkeypatch.setattr(certifi, "where", lambda: str(tmp_path / "localhost.pem"))
    _tls.cache_clear()
    yield
    _tls.cache_clear()


@pytest.mark.usefixtures("trusted")
def test_a_trusted_server_is_asked(server: LlmServer) -> None:
    """Whole answers and streams come over an encrypted connection as over a plain one."""
    server.script = [server.says("ok"), server.streams("o", "k")]
    provider = server.provider()
    assert provider.complete("S", "U") == "ok"
    assert list(provider.stream("S", "U")) == ["o", "k"]


def test_a_certificate_nobody_vouches_for_is_refused(
    tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent, nothing is tried again, and the environment cannot make it trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "localhost.pem"))
    with pytest.raises(ModelRejected, match="the server's certificate is not valid"):
        server.provider().complete("S", "U")
    assert server.requests == []
    assert server.naps.slept_s == []


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_dripping_server_ends_at_the_deadline(server: LlmServer, head: bytes) -> None:
    """An encrypted connection is cut as a plain one is."""
    server.script = [dripping(head)]
    timing = Timing(sleep=lambda _: None, random=lambda: 0.0)
    began = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"no complete answer within 1\.6 s"):
        server.provider(timing=timing, timeout_s=0.8, tries=2).complete("S", "U")
    assert time.monotonic() - began < 60
