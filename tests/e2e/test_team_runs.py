"""What examples/team/ starts: servers and a worker by its own words, and its proxy."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import HASHING, KB
from http_server import until
from nodes import Node
from postgres_server import PostgresServer

FOLDER = Path(__file__).resolve().parents[2] / "examples/team"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text())[
    "services"
]
KB_HOST = "kb.example.org"
DOC = {"text": "# Rope\n\nHemp ropes last.", "title": "Rope"}


def words(service: str) -> list[str]:
    """The command of a service, on a free port."""
    filled = [re.sub(r"\$\{KB_HOST[^}]*\}", KB_HOST, word) for word in SERVICES[service]["command"]]
    return ["0" if word == "7777" else word for word in filled]


def ask(port: int, path: str, host: str, body: object = None, token: str = "") -> tuple[int, Any]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    request.add_header("host", host)
    if token:
        request.add_header("authorization", f"Bearer {token}")
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None


@contextlib.contextmanager
def started(node: Node, service: str) -> Iterator[subprocess.Popen[str]]:
    """A service, as compose starts it."""
    process = subprocess.Popen(
        [KB, "--home", node.home, *HASHING, *words(service)],
        env=dict(node.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        grace_s = int(SERVICES[service]["stop_grace_period"].removesuffix("s"))
        process.communicate(timeout=grace_s)


@pytest.fixture
def team(postgres: PostgresServer, tmp_path: Path) -> Iterator[tuple[list[int], str]]:
    """The ports of both servers, with a worker beside them, and a token as the how-to makes it."""
    home = postgres.home("team")
    nodes = {
        name: Node(tmp_path / name, home, KB_MACHINE=name)
        for name in ("server-1", "server-2", "worker")
    }
    made = nodes["server-1"].run("token", "add", "ada", "--user", "ada", "--role", "writer")
    token = made.out.split()[-1]
    ports: list[int] = []
    with contextlib.ExitStack() as stack:
        for name, node in nodes.items():
            process = stack.enter_context(started(node, name))
            if name != "worker":
                assert process.stdout is not None
                ports.append(int(process.stdout.readline().rpartition(":")[2]))
        yield ports, token
    postgres.drop("team")


def test_servers_and_worker(team: tuple[list[int], str]) -> None:
    """They are healthy as the image and the proxy ask, let in by name, and share what is added."""
    (one, two), token = team
    for port in (one, two):
        for host in ("127.0.0.1:7777", "localhost"):
            assert ask(port, "/health/ready", host)[0] == 200
        assert ask(port, "/v1/search?q=hemp", KB_HOST)[0] == 401
        assert ask(port, "/v1/search?q=hemp", "evil.example", token=token)[0] in (400, 403, 421)
    assert ask(one, "/v1/docs", KB_HOST, DOC, token)[0] == 200
    until(lambda: ask(two, "/v1/search?q=hemp", KB_HOST, token=token)[1]["hits"])


@pytest.mark.skipif(shutil.which("caddy") is None, reason="Caddy is not installed")
def test_the_proxy(team: tuple[list[int], str], tmp_path: Path) -> None:
    """It reads the file, finds the servers healthy, and hands on what is added and asked."""
    ports, token = team
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    text = (FOLDER / "Caddyfile").read_text()
    for number, server in enumerate(ports, 1):
        text = text.replace(f"server-{number}:7777", f"127.0.0.1:{server}")
    # Without certificates, which it would fetch.
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
    proxy = subprocess.Popen(
        ["caddy", "run", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"],
        env={**os.environ, "KB_HOST": f"http://{KB_HOST}:{port}", "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def answers() -> bool:
            with contextlib.suppress(OSError):
                return ask(port, "/v1/search?q=hemp", KB_HOST, token=token)[0] == 200
            return False

        until(answers)
        assert ask(port, "/v1/docs", KB_HOST, DOC, token)[0] == 200
        until(lambda: ask(port, "/v1/search?q=hemp", KB_HOST, token=token)[1]["hits"])
    finally:
        proxy.terminate()
        proxy.wait(60)
