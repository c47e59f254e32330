"""How `kb mcp` starts and ends, as whoever starts it sees it."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import Home, run, surroundings


@pytest.fixture
def fresh(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}


def started(home: Home, *options: str) -> "subprocess.Popen[str]":
    """The command after its handshake, which was the first line on standard output."""
    process = subprocess.Popen(
        home.argv("-v", "mcp", *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE) + "\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "kb"
    return process


@pytest.mark.parametrize("options", [(), ("--write",)], ids=str)
def test_it_ends_when_its_input_does(fresh: Home, options: tuple[str, ...]) -> None:
    """Soon, with exit code 0, and nothing but the protocol was on standard output."""
    with started(fresh, *options) as process:
        out, err = process.communicate("no message\n\n", timeout=120)
        assert process.returncode == 0, err
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert fresh.run("check").code == 0


def test_what_is_no_message_is_answered(fresh: Home) -> None:
    """By an error without an id, before the first request as after it; the others go on."""
    lines = ["no message", "[" * 5000, "[]", '{"jsonrpc": "2.0", "id": 2, "method": 5}']
    codes = [-32700, -32700, -32600, -32600]
    ping = json.dumps({"jsonrpc": "2.0", "id": 3, "method": "ping"})
    with subprocess.Popen(
        fresh.argv("mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for first in (json.dumps(INITIALIZE), ping):
            process.stdin.write("".join(f"{line}\n" for line in (*lines, first)))
            process.stdin.flush()
            *refused, answer = [json.loads(process.stdout.readline()) for _ in (*lines, first)]
            assert [(one["id"], one["error"]["code"]) for one in refused] == [
                (None, code) for code in codes
            ]
            assert answer["id"] in (1, 3)
            assert "result" in answer
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out, err) == (0, "", "")


def test_a_client_that_reads_no_more_ends_it(fresh: Home) -> None:
    """With a message that it sends after that; nothing is said of a defect."""
    asked = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}) + "\n"
    with started(fresh) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        deadline = time.monotonic() + 120
        with contextlib.suppress(BrokenPipeError):
            while process.poll() is None:
                assert time.monotonic() < deadline
                process.stdin.write(asked)
                process.stdin.flush()
                time.sleep(0.05)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        assert process.wait(120) == 0
        assert "defect" not in process.stderr.read()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_ends_when_it_is_told_to(fresh: Home, number: int, code: int) -> None:
    """Within two seconds, while its input is open and it works on jobs."""
    with started(fresh, "--write") as process:
        begun = time.monotonic()
        process.send_signal(number)
        assert process.wait(120) == code
        assert time.monotonic() - begun < 60
    assert fresh.run("check").code == 0


def test_writing_as_a_user_is_refused(fresh: Home) -> None:
    """Titles and addresses are one for all users, so only the operator writes."""
    ran = fresh.run("mcp", "--write", "--user", "bob")
    assert (ran.code, ran.out) == (2, "")
    assert "leave out --user" in ran.err
    assert fresh.run("mcp", "--user", " ").code == 2


def test_without_its_packages_it_says_what_to_install(fresh: Home) -> None:
    """One line and exit code 1, where the extra was not installed."""
    code = "import sys; sys.modules['mcp'] = None; from kb_cli.main import main; main()"
    ran = run([sys.executable, "-c", code, *fresh.argv("mcp")[1:]])
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "kb: MCP needs packages that are not installed; run `pip install 'kb-search[serve]'`\n"
    )
    assert not fresh.root.exists()
