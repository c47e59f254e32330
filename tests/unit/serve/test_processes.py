"""The parent of several processes, which are here programs of a line."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

from kb.serve.listening import Listening
from kb.serve.processes import Processes, ProcessFailed
from kb.serve.shared import Places, SharedFile

LINE = "import socket, sys, time; s = socket.socket(fileno=int(sys.argv[1])); s.recv(70000); "


def place(listener: socket.socket) -> Listening:
    return Listening(
        public=listener,
        inside=None,
        is_loopback=True,
        places=Places(),
        sessions=SharedFile(),
    )


def program(line: str, descriptor: int) -> list[str]:
    return [sys.executable, "-c", LINE + line, str(descriptor)]


def test_one_that_cannot_start_ends_the_server() -> None:
    """The parent says with which exit code, and no other process is left."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Processes(place(listener), 2, lambda fd: program("sys.exit(7)", fd))
        with pytest.raises(ProcessFailed, match="exit code 7"):
            server.run(lambda: pytest.fail("it was not ready"))


def test_one_that_ends_later_starts_again(tmp_path: Path) -> None:
    """And does until a signal comes; the pause between two starts grows."""
    starts = tmp_path / "starts"
    line = f"open({str(starts)!r}, 'a').write('x'); s.send(b'ready'); time.sleep(0.1)"

    def end_soon() -> None:
        while not starts.exists() or len(starts.read_text()) < 3:
            done.wait(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Processes(place(listener), 1, lambda fd: program(line, fd))
        thread = threading.Thread(target=end_soon)
        assert server.run(thread.start) == signal.SIGTERM
        thread.join()
    assert starts.read_text() == "xxx"


def test_what_a_crashed_process_had_taken_is_free_again() -> None:
    """A count is each process's own, and the limits look at those of the others."""
    memory = SharedFile().descriptor
    one, two = Places(memory, 2, own=0).of("short"), Places(memory, 2, own=1).of("short")
    one.set(3)
    two.set(4)
    assert (one.others, two.others) == (4, 3)
    Places(memory, 2).clear(1)
    assert (one.others, two.others) == (0, 3)
