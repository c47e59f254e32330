"""The forks that tests run in the place of new processes."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import forked_commands
import pytest
from commands import KB, run, surroundings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tests fork on Linux alone")

LINES = (
    ["--version"],
    ["ls", "--json"],
    ["add", "-", "--title", "A title"],
    ["show", "nothing"],
    ["no-such-command"],
)


def test_a_fork_does_what_a_new_process_does(tmp_path: Path) -> None:
    """The same output, errors and exit code, from the same input, environment and folder."""
    for words in LINES:
        said = []
        for kind, options in (("forked", {}), ("new", {"close_fds": True})):
            env = surroundings(KB_HOME=str(tmp_path / kind), KB_CFG="embed.kind=hashing")
            ran = run([KB, *words], stdin="Words.\n", env=env, cwd=tmp_path, **options)
            said.append((ran.code, ran.out, ran.err.replace(str(tmp_path / kind), "")))
        assert said[0] == said[1], words


def test_a_fork_takes_signals_as_a_new_process_does(tmp_path: Path) -> None:
    """A worker ends by SIGTERM with 0, by SIGINT with 130, and by SIGKILL at once."""
    argv = [KB, "--home", str(tmp_path), "--cfg", "embed.kind=hashing", "worker"]
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
        worker = forked_commands.Process(argv, env=surroundings())
        assert "at work" in worker.stderr.readline()
        assert worker.poll() is None
        worker.send_signal(number)
        worker.communicate(timeout=120)
        assert worker.returncode == code


def test_a_fork_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """Past its time there is no process any more."""
    argv = [KB, "--home", str(tmp_path), "--cfg", "embed.kind=hashing", "worker"]
    with pytest.raises(subprocess.TimeoutExpired):
        forked_commands.run(argv, env=surroundings(), timeout_s=0.5)


def test_an_environment_that_is_read_at_the_start_does_not_fork() -> None:
    """What the interpreter looks at when it starts needs one that starts."""
    assert forked_commands.can_fork(surroundings())
    assert not forked_commands.can_fork(surroundings(LC_ALL="C"))
    assert not forked_commands.can_fork(surroundings(PYTHONUTF8="0"))


def test_nothing_waits_for_a_server_that_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has asked it is told, and does not wait for ever."""
    server = forked_commands.Server
    server.socket_of()
    for name in ("_pid", "_socket", "_process"):
        monkeypatch.setattr(server, name, getattr(server, name))
    server._pid = 0
    server.socket_of()
    server._process.send_signal(signal.SIGSTOP)
    dying = threading.Timer(0.3, server._process.kill)
    dying.start()
    with pytest.raises(RuntimeError, match="has ended"):
        forked_commands.run([KB, "--version"], env=surroundings(), timeout_s=60)
    dying.join()
    server._process.wait()
    server._socket.close()
