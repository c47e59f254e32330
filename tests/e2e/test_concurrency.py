"""Several processes on one home at once: nothing is lost, nothing is written twice."""

import itertools
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from crash_rig import Rig, assert_adds_up, ended, wait_until
from homes import LEASE_MS, SmallHome

from kb.intake.worker.embedding import EmbedHandler
from kb.model.ids import doc_id
from kb.model.source import file_lsid
from kb.store.jobs import queue

ROUNDS: Final = 4
SHORT_LEASE: Final = ("work.lease_ms=1000",)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def text(word: str) -> str:
    return f"# A title\n\nHere stands {word}, among words that all files have.\n"


# Everything at once.


class Editors:
    """Two people who edit the same folder and take it in after each edit."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.lock = threading.Lock()
        self.last: dict[str, str] = {}
        self.words: set[str] = set()
        self.reports: list[Any] = []

    def edit(self, who: str, number: int) -> None:
        own, both = f"own{who}{number}", f"both{who}{number}"
        twin = f"twin{number}"
        words = {f"{who}.md": own, "both.md": both, "sub/twin.md": twin, "sub/other.md": twin}
        for name, word in words.items():
            # Which of two edits of a file is its last one is known only so.
            with self.lock:
                self.rig.write({name: text(word)})
                self.last[name] = word
                self.words.add(word)

    def work(self, who: str) -> None:
        for number in range(ROUNDS):
            self.edit(who, number)
            added = self.rig.run("add", "-r", self.rig.sources, "--json")
            assert (added.code, added.err) == (0, ""), added
            self.reports.append(added.json)


def repeated(done: threading.Event, command: Callable[[int], None]) -> int:
    """Run a command again and again until `done`; returns how often."""
    for number in itertools.count(1):
        command(number)
        if done.is_set():
            return number
    raise AssertionError


def test_adders_a_searcher_and_a_compactor_at_once(rig: Rig) -> None:
    """Every file ends as it was last written, each version came once, no search ever failed."""
    editors, done = Editors(rig), threading.Event()

    before_the_first = f"kb: there is no home at {rig.home} yet\n"

    def search(_: int) -> None:
        said = rig.run("search", "title", "-k", "50", "--json")
        assert (said.code, said.err.replace(before_the_first, "")) == (0, ""), said
        assert said.json["truncated"] is None

    def compact(_: int) -> None:
        said = rig.run("compact", "--grace-min", "0", "--json")
        assert (said.code, said.err.replace(before_the_first, "")) == (0, ""), said

    with ThreadPoolExecutor(4) as threads:
        others = [threads.submit(repeated, done, each) for each in (search, compact)]
        adders = [threads.submit(editors.work, who) for who in ("anna", "bert")]
        try:
            for adder in adders:
                adder.result()
        finally:
            done.set()
        assert min(other.result() for other in others) > 1
    assert_all_versions_acknowledged(rig, editors.reports)
    found = rig.found(sorted(editors.words))
    expected: dict[str, list[str]] = {word: [] for word in editors.words}
    for name, word in editors.last.items():
        expected[word] = sorted([*expected[word], name])
    assert found == expected
    rig.check()
    rig.compact()
    rig.check()
    assert rig.found(sorted(editors.words)) == expected
    # The twins have their raw bytes in common.
    assert len(rig.content_files()) == 2 * len(editors.last) - 1


def assert_all_versions_acknowledged(rig: Rig, reports: list[Any]) -> None:
    """The versions of each source are gapless, and each was told to exactly one adder."""
    told: Counter[str] = Counter()
    for report in reports:
        assert_adds_up(report)
        assert report["failed"] == report["skipped"] == 0
        told.update(line["doc_id"] for line in report["docs"] if line["status"] != "unchanged")
    expected = {
        doc_id(file_lsid(rig.sources.resolve() / name), version)
        for name, row in rig.docs().items()
        for version in range(1, row["version"] + 1)
    }
    assert told == Counter(dict.fromkeys(expected, 1))


# Processes that stand still for a while.


def stopped_at(rig: Rig, point: str, hits: int, process: Any) -> None:
    """Stop a process in the pause of a failpoint's last hit."""
    wait_until(lambda: rig.hit().count(point) >= hits, point)
    process.send_signal(signal.SIGSTOP)


def test_an_adder_overtaken_by_a_later_edit(rig: Rig) -> None:
    """Who read the older bytes and commits last reads the file again: the later edit stays."""
    rig.write({"note.md": text("earlier")})
    with rig.start("add", "-r", rig.sources, "--json", armed="content.after_link=pause@2") as slow:
        stopped_at(rig, "content.after_link", 2, slow)
        rig.write({"note.md": text("later")})
        assert rig.add()["added"] == 1
        slow.send_signal(signal.SIGCONT)
        said = ended(slow)
    assert said.code == 0
    assert_adds_up(said.json)
    assert said.json["unchanged"] == 1
    assert rig.found(["earlier", "later"]) == {"earlier": [], "later": ["note.md"]}
    assert rig.docs("all")["note.md"]["version"] == 1
    rig.check()


@pytest.mark.parametrize("point", ["worker.after_chunk", "worker.after_embed"])
def test_a_worker_stopped_beyond_its_lease(rig: Rig, point: str) -> None:
    """Another finishes its job; when it goes on, its late finish changes nothing."""
    rig.write({"note.md": text("quince"), "other.md": text("medlar")})
    assert rig.call("add", "-r", rig.sources, "--no-wait").code == 0
    with rig.start("worker", "--drain", armed=f"{point}=pause", cfg=SHORT_LEASE) as slow:
        stopped_at(rig, point, 1, slow)
        assert rig.call("worker", "--drain", cfg=SHORT_LEASE).code == 0
        before = counted(rig)
        slow.send_signal(signal.SIGCONT)
        assert ended(slow).code == 0
    assert counted(rig) == before
    assert before["jobs"] == 0
    assert rig.found(["quince", "medlar"]) == {"quince": ["note.md"], "medlar": ["other.md"]}


def counted(rig: Rig) -> dict[str, int]:
    """How many records of each kind there are, in a home that is whole."""
    checked = rig.call("check", "--json").json
    assert checked["findings"] == []
    counts: dict[str, int] = checked["checked"]
    return counts


def test_a_writer_stopped_beyond_the_grace(rig: Rig) -> None:
    """Files swept away between staging and commit are written again before the commit."""
    rig.write({"note.md": text("quince")})
    with rig.start("add", "-r", rig.sources, "--json", armed="content.after_link=pause@2") as slow:
        stopped_at(rig, "content.after_link", 2, slow)
        assert len(rig.content_files()) == 2
        rig.compact()
        assert rig.content_files() == set()
        slow.send_signal(signal.SIGCONT)
        said = ended(slow)
    assert (said.code, said.json["added"]) == (0, 1)
    assert len(rig.content_files()) == 2
    rig.check()
    assert rig.found(["quince"]) == {"quince": ["note.md"]}


# Two docs with one text.


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    made = SmallHome(tmp_path)
    yield made
    made.close()


def embed_next(home: SmallHome) -> None:
    with home.store.write() as txn:
        claims = queue.claim(txn, home.clock, ("embed",), limit=1, lease_ms=LEASE_MS)
    assert len(claims) == 1
    EmbedHandler(home.store, lambda: home.embedder, threading.Event()).work(claims)


def test_a_vector_that_another_docs_job_made(home: SmallHome) -> None:
    """A doc whose text was embedded for another doc meanwhile is found by meaning all the same."""
    home.put("one.md", text("quince"))
    home.put("copy.md", text("quince"))
    home.work("chunk")
    assert home.check().sound
    for _ in range(2):
        embed_next(home)
        assert home.check().sound
    home.dense.catch_up(home.store, wait_s=5)
    assert home.dense.count == 2
