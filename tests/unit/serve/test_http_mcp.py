"""`/mcp` in one process: what no client can bring about."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_http_inside import served_of

from kb.home.app import App
from kb.model.config import EmbedSettings, Settings
from kb.model.doc import OPERATOR
from kb.serve.http_mcp import mcp_routes
from kb.serve.http_reply import Refusal, Reply
from kb.serve.http_routes import Caller, Message, run


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with App.open(tmp_path / "home", Settings(embed=EmbedSettings(kind="hashing"))) as opened:
        yield opened


def sent(app: App, **message: Any) -> Reply:
    """What the route answers to a message."""
    (route,) = mcp_routes()
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    headers = {"accept": ["application/json"], "content-type": ["application/json"]}
    caller = Caller(scope=OPERATOR, role="admin")
    return run(route, served_of(app), Message(headers=headers, body=body), caller)


def test_without_its_packages_it_says_so(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """501, and what to install; nothing else of the server needs them."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(Refusal) as refused:
        sent(app, id=1, method="ping")
    assert (refused.value.status, refused.value.code) == (501, "not_installed")
    assert "kb-search[serve]" in refused.value.detail


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"no message", -32700),
        (b'{"a": "\xff"}', -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 2, "method": 5}', -32600),
    ],
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_what_is_no_message_is_answered(app: App, body: bytes, code: int, version: str) -> None:
    """By the error of JSON-RPC without an id, in each version of the protocol."""
    (route,) = mcp_routes()
    headers = {
        "accept": ["application/json"],
        "content-type": ["application/json"],
        "mcp-protocol-version": [version],
    }
    caller = Caller(scope=OPERATOR, role="admin")
    reply = run(route, served_of(app), Message(headers=headers, body=body), caller)
    assert reply.status == 400
    answer = json.loads(reply.body)
    assert (answer["id"], answer["error"]["code"]) == (None, code)


def test_what_the_protocol_logs_is_dropped(
    app: App, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It may quote a message: neither standard error nor the log of kb has it."""
    assert json.loads(sent(app, id=1, method="ping").body) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {},
    }
    logging.getLogger("mcp.server").error("a secret")
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
