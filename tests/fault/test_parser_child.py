"""What a hostile document can do to the child, and what it cannot do to us."""

# Long because every way out of the child is tried.

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from child_processes import finished
from pdf_shapes import drawn, lines

from kb.errors import EmptySource, Unparsable
from kb.intake.canonicalize import CanonicalizeInput, Parser

PAGE = CanonicalizeInput(
    data=b"<html><title>T</title><body><p>Some words to read.</p></body></html>",
    mime="text/html",
    name="page.html",
)
needs_clock = pytest.mark.skipif(
    sys.platform != "linux", reason="what another process has used is told by Linux"
)
ECHO = """
import os, signal, struct, sys, time
def take():
    size = struct.unpack(">Q", os.read(0, 8))[0]
    while size > 0:
        size -= len(os.read(0, min(size, 65536)))
def say(data):
    os.write(1, struct.pack(">Q", len(data)) + data)
"""


@pytest.fixture
def stub() -> Iterator[Callable[..., Parser]]:
    """A parser whose child runs the given lines instead of reading."""
    made: list[Parser] = []

    def make(lines: str, **bounds: float) -> Parser:
        parser = Parser(argv=[sys.executable, "-S", "-c", ECHO + lines], **bounds)  # type: ignore[arg-type]
        made.append(parser)
        return parser

    yield make
    for parser in made:
        parser.close()


def is_gone(pid: int) -> bool:
    """Whether no process, not even a zombie, has this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(condition: Callable[[], bool], timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def test_reads_and_reaps() -> None:
    """A page is read in a child; after close there is no child and no zombie."""
    with Parser() as parser:
        assert parser.child_pid is None
        assert parser.parse(PAGE).title == "T"
        pid = parser.child_pid
        assert pid is not None
        assert pid != os.getpid()
        assert parser.parse(PAGE).title == "T"
        assert parser.child_pid == pid
    assert is_gone(pid)


def test_text_needs_no_child() -> None:
    """Markdown and plain text are read here."""
    with Parser() as parser:
        note = CanonicalizeInput(data=b"# N\n", mime="text/markdown", name="n.md")
        assert parser.parse(note).title == "N"
        assert parser.child_pid is None


def test_errors_cross_as_they_are() -> None:
    """The child's refusal has its class, its source and its reason here, and no traceback."""
    with Parser() as parser:
        with pytest.raises(EmptySource) as caught:
            parser.parse(CanonicalizeInput(data=b"<html></html>", mime="text/html", name="e.html"))
        assert caught.value.fields["source"] == "e.html"
        assert str(caught.value).startswith("e.html: no text is visible")
        assert parser.parse(PAGE).title == "T"


def test_hang_is_ended_in_time(stub: Callable[..., Parser]) -> None:
    """A child that neither works nor answers is given up, and its document with it."""
    parser = stub("take(); time.sleep(600)", cpu_s_max=0.5)
    with pytest.raises(Unparsable, match=r"page\.html: its reader did nothing for 0\.5 s"):
        parser.parse(PAGE)
    assert parser.child_pid is None


def spinning(seconds: float) -> str:
    """Lines of a child that uses so much processor time, then answers with what is no answer."""
    return f"take()\nwhile time.process_time() < {seconds}: pass\nsay(b'')"


def test_a_long_pdf_keeps_the_pages_that_its_time_allowed() -> None:
    """A PDF that is read too slowly is cut after the pages that were read, and says so."""
    page = lines([f"Some words that stand on line {number}." for number in range(400)], pitch=14)
    slow = CanonicalizeInput(data=drawn(*[page] * 150), mime="application/pdf", name="slow.pdf")
    small = CanonicalizeInput(data=drawn(page), mime="application/pdf", name="small.pdf")
    with Parser(cpu_s_max=0.3) as parser:
        # What importing costs is not the long one's.
        assert parser.parse(small).warnings == ()
        result = parser.parse(slow)
        assert parser.child_pid is not None
    assert len(result.warnings) == 1
    assert re.fullmatch(
        r"cut after \d+ pages of 150: reading took [\d.]+ s of processor time", result.warnings[0]
    )
    assert result.coverage is not None
    assert result.coverage.pages == 150
    assert 1 < result.coverage.pages_with_text == result.markdown.count("\f") + 1 < 150


@needs_clock
def test_work_is_waited_for(stub: Callable[..., Parser]) -> None:
    """A child that works is not given up for the time that passes, however busy the machine is."""
    parser = stub(spinning(1.2), cpu_s_max=0.2)
    with pytest.raises(Unparsable, match="no sensible answer"):
        parser.parse(PAGE)


def test_processor_time_is_bounded() -> None:
    """A document that takes more than its processor time is given up, and the child with it."""
    slow = CanonicalizeInput(
        data=b"<html><body>" + b"<li>a" * 150_000, mime="text/html", name="slow.html"
    )
    with Parser(cpu_s_max=0.15) as parser:
        with pytest.raises(Unparsable, match=r"it takes more than 0\.15 s of processor time"):
            parser.parse(slow)
        assert parser.child_pid is None


def test_the_bound_holds_where_signals_are_ignored() -> None:
    """The child does not take over that whoever started its parent ignores them."""
    code = (
        "import signal\nfrom kb.intake.canonicalize import CanonicalizeInput, Parser\n"
        "from kb.errors import Unparsable\n"
        "for one in (signal.SIGPROF, signal.SIGXCPU): signal.signal(one, signal.SIG_IGN)\n"
        "data = b'<html><body>' + b'<li>a' * 150_000\n"
        "slow = CanonicalizeInput(data=data, mime='text/html', name='slow.html')\n"
        "with Parser(cpu_s_max=0.15) as parser:\n"
        "    try: parser.parse(slow)\n"
        "    except Unparsable as error: print(error)\n"
    )
    assert "more than 0.15 s of processor time" in finished(code).stdout


def test_child_that_never_reads_is_ended_in_time(stub: Callable[..., Parser]) -> None:
    """More bytes than a pipe holds, and nobody takes them."""
    parser = stub("time.sleep(600)", cpu_s_max=0.5)
    big = CanonicalizeInput(data=b"x" * 5_000_000, mime="text/html", name="big.html")
    with pytest.raises(Unparsable, match="did nothing"):
        parser.parse(big)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("take(); os.kill(os.getpid(), signal.SIGKILL)", "killed, perhaps because memory ran out"),
        ("take(); os.kill(os.getpid(), signal.SIGSEGV)", r"crashed \(SIGSEGV\)"),
        ("take(); os.kill(os.getpid(), signal.SIGXCPU)", "more than 20 s of processor time"),
        ("take(); sys.exit(3)", "ended with status 3"),
        ("sys.exit(0)", "ended with status 0"),
        ("take(); say(b'garbage')", "no sensible answer"),
        ("take(); os.write(1, b'\\xff' * 999); time.sleep(600)", "no sensible answer"),
        ("take(); say(b''); time.sleep(600)", "no sensible answer"),
        ("take(); os.write(1, struct.pack('>Q', 99)); sys.exit(0)", "ended with status 0"),
    ],
)
def test_every_end_is_a_refusal(stub: Callable[..., Parser], lines: str, reason: str) -> None:
    """However the child ends or babbles, the caller gets one clear Unparsable, twice running."""
    parser = stub(lines, cpu_s_max=20)
    for _ in range(2):
        with pytest.raises(Unparsable, match=reason):
            parser.parse(PAGE)
        assert parser.child_pid is None


def test_child_that_cannot_start() -> None:
    """A missing program is a refusal, too."""
    with (
        Parser(argv=["/nonexistent/program"]) as parser,
        pytest.raises(Unparsable, match="started"),
    ):
        parser.parse(PAGE)


def test_answer_before_the_question_is_garbage(stub: Callable[..., Parser]) -> None:
    """An answer to a question not yet fully sent cannot be to this question."""
    parser = stub("say(b'x'); time.sleep(600)", cpu_s_max=20)
    big = CanonicalizeInput(data=b"x" * 5_000_000, mime="text/html", name="big.html")
    with pytest.raises(Unparsable, match="no sensible answer"):
        parser.parse(big)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory bound is kept by Linux")
def test_memory_is_bounded() -> None:
    """A page whose tree needs more than the bound is refused, and the next one is read."""
    bomb = b"<html><body>" + b"<p>a<b>b</b>" * 3_000_000
    with Parser(memory_bytes_max=400 * 1024**2) as parser:
        with pytest.raises(Unparsable) as caught:
            parser.parse(CanonicalizeInput(data=bomb, mime="text/html", name="bomb.html"))
        assert "memory" in str(caught.value) or "crashed" in str(caught.value)
        assert parser.parse(PAGE).title == "T"


def test_killed_between_documents() -> None:
    """A child that dies idle is replaced without a word."""
    with Parser() as parser:
        parser.parse(PAGE)
        pid = parser.child_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert parser.parse(PAGE).title == "T"
        assert parser.child_pid != pid


def test_killed_while_reading() -> None:
    """A child killed at work costs its document; the next one is read."""
    slow = CanonicalizeInput(
        data=b"<html><body>" + b"<li>a" * 150_000, mime="text/html", name="slow.html"
    )
    with Parser() as parser:
        parser.parse(PAGE)
        pid = parser.child_pid
        assert pid is not None
        killer = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
        killer.start()
        with pytest.raises(Unparsable, match="killed"):
            parser.parse(slow)
        killer.join()
        assert parser.parse(PAGE).title == "T"


def test_child_ignores_interrupts() -> None:
    """Ctrl-C is the parent's to handle: the child has its own session and ignores SIGINT."""
    with Parser() as parser:
        parser.parse(PAGE)
        pid = parser.child_pid
        assert pid is not None
        assert os.getsid(pid) != os.getsid(0)
        os.kill(pid, signal.SIGINT)
        assert parser.parse(PAGE).title == "T"
        assert parser.child_pid == pid


@pytest.mark.usefixtures("interruptible")
def test_interrupt_while_waiting_drops_the_child(
    stub: Callable[..., Parser],
) -> None:
    """After Ctrl-C in the parent the half-read answer is not taken for the next document's."""
    parser = stub("take(); time.sleep(600)")
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        parser.parse(PAGE)
    assert parser.child_pid is None


def test_recycled_after_some_documents() -> None:
    """A child reads so many documents and no more."""
    with Parser(docs_per_child_max=2) as parser:
        pids = []
        for _ in range(3):
            parser.parse(PAGE)
            pids.append(parser.child_pid)
        assert pids[1] is None
        assert pids[0] != pids[2]


def test_threads_take_turns() -> None:
    """Several threads share one child and get each its own answer."""
    titles: dict[int, str] = {}
    with Parser() as parser:

        def work(number: int) -> None:
            page = f"<html><title>T{number}</title><p>words</p>".encode()
            source = CanonicalizeInput(data=page, mime="text/html", name="x")
            titles[number] = parser.parse(source).title

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert titles == {i: f"T{i}" for i in range(8)}


def test_close_is_bounded_while_another_thread_waits(stub: Callable[..., Parser]) -> None:
    """Closing ends a document in the works; it does not wait for it."""
    parser = stub("take(); time.sleep(600)")
    errors: list[Exception] = []

    def work() -> None:
        try:
            parser.parse(PAGE)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: parser.child_pid is not None)
    start = time.monotonic()
    parser.close()
    thread.join()
    assert time.monotonic() - start < 60
    assert [type(error) for error in errors] == [Unparsable]
    with pytest.raises(ValueError, match="closed"):
        parser.parse(PAGE)
    parser.close()


def test_orphan_ends_with_its_parent(tmp_path: Path) -> None:
    """A parent that is killed leaves no child behind."""
    root = Path(__file__).resolve().parents[2]
    code = (
        "import os, signal\nfrom kb.intake.canonicalize import CanonicalizeInput, Parser\n"
        f"p = Parser(); p.parse(CanonicalizeInput(data={PAGE.data!r}, "
        "mime='text/html', name='x'))\n"
        "print(p.child_pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    env = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    stat = Path(f"/proc/{pid}/stat")
    # In a container without an init the orphan may stay a zombie; it has ended all the same.
    wait_until(lambda: is_gone(pid) or (stat.exists() and ") Z " in stat.read_text()))


def test_the_working_directory_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the same name where kb is run is not imported by the child."""
    (tmp_path / "msgspec.py").write_text("raise SystemExit(9)")
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    with Parser() as parser:
        assert parser.parse(PAGE).title == "T"


def test_the_child_is_told_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent's environment, but for what finds programs, stays with the parent."""
    monkeypatch.setenv("KB_TOKEN", "canary")
    with Parser() as parser:
        parser.parse(PAGE)
        environ = Path(f"/proc/{parser.child_pid}/environ")
        if not environ.exists():
            pytest.skip("no /proc here")
        assert b"canary" not in environ.read_bytes()


def test_a_large_parent_does_not_cost_a_child_a_document() -> None:
    """What the parent holds is not the child's: the same one reads page after page."""
    code = (
        "import sys; from pathlib import Path\n"
        "from kb.intake.canonicalize import CanonicalizeInput, Parser\n"
        "held = bytearray(b'x') * (300 << 20)\n"
        "page = CanonicalizeInput(data=b'<p>words', mime='text/html', name='p.html')\n"
        "with Parser(memory_bytes_max=512 << 20) as parser:\n"
        "    pids = {(parser.parse(page), parser.child_pid)[1] for _ in range(3)}\n"
        "print(len(pids), None in pids)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "1 False\n", ran.stderr
