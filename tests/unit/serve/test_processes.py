"""The parent of several processes, which are here programs of a line."""

import contextlib
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

from kb.serve.listening import InheritedSocket, Listening
from kb.serve.processes import Processes, ProcessFailed
from kb.serve.shared import Places, SharedFile, unnamed_file

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


def test_a_connection_is_left_to_the_process_that_has_fewer() -> None:
    """Which takes it; if it does not, for it is busy or gone, another one does in the end."""
    memory = unnamed_file()
    counts = [Places(memory, 2, own=own).of("connections") for own in (0, 1)]
    with socket.create_server(("127.0.0.1", 0), backlog=8) as listener:
        many, few = (InheritedSocket(os.dup(listener.fileno()), count) for count in counts)
        with many, few, socket.create_connection(listener.getsockname()) as client:
            counts[0].set(1)
            with pytest.raises(BlockingIOError):
                many.accept()
            with few.accept()[0] as taken:
                assert taken.getpeername() == client.getsockname()
            counts[1].set(1)
            with socket.create_connection(listener.getsockname()), many.accept()[0]:
                counts[0].set(2)
            with socket.create_connection(listener.getsockname()):
                assert accepted_after(many) > 1
    os.close(memory)


def accepted_after(listener: InheritedSocket) -> int:
    """How often it left a connection to others before it took it."""
    for left in range(100):
        with contextlib.suppress(BlockingIOError):
            listener.accept()[0].close()
            return left
    raise AssertionError
