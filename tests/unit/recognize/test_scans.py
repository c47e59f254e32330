"""When are pictures read, and what becomes of the doc?"""

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import picture_files as pictures
import pypdf
import pytest
from fakes import FakeClock
from pdf_shapes import drawn, lines

from kb.home.app import App
from kb.intake.recognize.scans import ScanHandler, follow_ocr
from kb.intake.recognize.tesseract import Tesseract
from kb.intake.sync.add import AddOptions
from kb.intake.sync.report import AddReport
from kb.model.config import EmbedSettings, Settings
from kb.model.config.sections import IngestSettings
from kb.model.doc import OPERATOR, Doc
from kb.model.job import Job
from kb.model.search import SearchRequest
from kb.store import docs
from kb.store.jobs import queue

SCAN = drawn("", "", "")
HALF = drawn(lines(["Typed words stand here."]), "", "")


class ScanHome:
    """A home whose tesseract is a script that names the pictures it has seen."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.clock = FakeClock(now_ms=4_000_000_000_000)
        folder = root / "bin"
        folder.mkdir()
        self.program = folder / "tesseract"
        self.says(f"echo x >> {root}/seen; echo Recognised words $(wc -l < {root}/seen)")
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        self.app = self.open()

    def open(self, **ingest: object) -> App:
        settings = Settings(embed=EmbedSettings(kind="hashing"), ingest=IngestSettings(**ingest))
        return App.open(self.root / "home", settings, clock=self.clock)

    def says(self, script: str) -> None:
        self.program.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def add(self, data: bytes, name: str = "minutes.pdf") -> AddReport:
        path = self.root / name
        path.write_bytes(data)
        with self.app.parser() as parser:
            options = AddOptions(home=self.app.paths.root)
            return self.app.adder(parser, options).add([str(path)])

    def doc(self) -> Doc:
        with self.app.store.read() as txn:
            (doc,) = docs.all_latest(txn)
            return doc

    def text(self) -> str:
        doc = self.doc()
        return self.app.content.read(doc.md_path, doc.md_sha256).decode()

    def waiting(self) -> list[Job]:
        with self.app.store.read() as txn:
            return list(queue.pending(txn, "ocr"))

    def recognise(self, *, slice_ms: int = 15_000) -> int:
        """Do the jobs until none is left; returns how many there were."""
        engine: Tesseract | None = self.app.tesseract
        handler = ScanHandler(
            self.app.store,
            self.app.content,
            lambda: self.app.ingestor,
            self.app.parser,
            lambda: engine,
            slice_ms=slice_ms,
        )
        done = 0
        while True:
            with self.app.store.write() as txn:
                claims = queue.claim(txn, self.clock, ["ocr"], limit=9, lease_ms=60_000)
            if not claims:
                return done
            assert len(claims) == 1
            handler.work(claims)
            done += 1


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScanHome]:
    made = ScanHome(tmp_path, monkeypatch)
    yield made
    made.app.close()


def test_a_scan_is_its_name_until_it_is_read(home: ScanHome) -> None:
    """It is taken in at once, found by its name, and by its words after the job."""
    report = home.add(SCAN)
    assert (report.added, report.failed, report.ocr_waiting, report.ocr_missing) == (1, 0, 1, 0)
    doc = home.doc()
    assert (home.text(), doc.title, doc.version) == ("minutes\n", "minutes", 1)
    assert doc.coverage is not None
    assert (doc.coverage.pages, doc.coverage.pages_with_text, doc.coverage.ocr) == (3, 0, "")
    assert home.recognise() == 1
    doc = home.doc()
    words = "Recognised words {}"
    assert home.text() == "\n\f\n".join(words.format(n) for n in (1, 2, 3)) + "\n"
    assert (doc.title, doc.version) == ("minutes", 2)
    assert doc.coverage is not None
    assert doc.coverage.ocr == "tesseract:eng"
    assert (doc.coverage.pages_with_text, doc.coverage.ocr_pages) == (3, (1, 2, 3))
    assert home.add(SCAN).unchanged == 1
    assert home.waiting() == []


def test_only_pages_without_text_are_read(home: ScanHome) -> None:
    """What is typed stays as it is, and the recognised pages stand in their places."""
    assert home.add(HALF).ocr_waiting == 1
    home.recognise()
    parts = home.text().split("\n\f\n")
    assert parts == ["Typed words stand here.", "Recognised words 1", "Recognised words 2\n"]
    doc = home.doc()
    assert doc.coverage is not None
    assert doc.coverage.ocr_pages == (2, 3)


def test_a_long_file_is_read_in_slices(home: ScanHome) -> None:
    """A job that is over its time makes room for another, and no page is read twice."""
    home.add(SCAN)
    assert home.recognise(slice_ms=-1) == 3
    assert home.text().endswith("Recognised words 3\n")
    assert home.doc().version == 2


def test_what_has_no_words_is_not_asked_for_again(home: ScanHome) -> None:
    """Pages without words stay without; the doc says that they were looked at."""
    home.says("echo")
    home.add(SCAN)
    assert home.recognise() == 1
    doc = home.doc()
    assert home.text() == "minutes\n"
    assert doc.version == 1
    assert doc.coverage is not None
    assert (doc.coverage.ocr, doc.coverage.ocr_pages) == ("tesseract:eng", ())
    assert follow_ocr(home.app.store, "tesseract:eng") == 0
    assert follow_ocr(home.app.store, "tesseract:eng+deu") == 1


def test_a_language_that_is_missing_ends_the_job(home: ScanHome) -> None:
    """The job fails for good and says why, and the doc stays what it was."""
    home.says("echo 'Failed loading language xyz' >&2; exit 1")
    home.add(SCAN)
    home.recognise()
    with home.app.store.read() as txn:
        (job,) = queue.failed(txn)
    assert job.last_error is not None
    assert "Failed loading language" in job.last_error
    assert home.text() == "minutes\n"


def test_a_page_that_cannot_be_read_costs_no_other(home: ScanHome) -> None:
    """A picture that tesseract dies of stays without text."""
    seen = home.root / "seen"
    home.says(f"echo x >> {seen}; test $(wc -l < {seen}) != 2 || kill -9 $$; echo ab")
    home.add(SCAN)
    home.recognise()
    assert home.text() == "ab\n\f\n\n\f\nab\n"
    doc = home.doc()
    assert doc.coverage is not None
    assert (doc.coverage.pages_with_text, doc.coverage.ocr_pages) == (2, (1, 3))


def test_without_the_program_a_scan_is_refused_and_counted(
    home: ScanHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says how many would be read; once it is installed the file comes in."""
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(home.root))
    report = home.add(SCAN)
    assert (report.failed, report.ocr_missing, report.ocr_waiting) == (1, 1, 0)
    assert report.problems[0].reason.endswith("; apt install tesseract-ocr, then add it again")
    assert (home.add(HALF, "half.pdf").ocr_missing, home.waiting()) == (1, [])
    monkeypatch.setenv("PATH", path)
    del home.app.__dict__["tesseract"]
    home.app.pool()
    assert [job.doc_id for job in home.waiting()] == [home.doc().doc_id]
    assert home.add(SCAN).added == 1
    assert len(home.waiting()) == 2


def test_it_can_be_turned_off(home: ScanHome) -> None:
    """Nothing is read, counted or asked for, and a scan says which setting keeps it out."""
    home.app.close()
    home.app = home.open(ocr="off")
    report = home.add(SCAN)
    assert (report.failed, report.ocr_missing, report.ocr_waiting) == (1, 0, 0)
    advice = "; ingest.ocr is off: set it to auto, then add it again"
    assert report.problems[0].reason.endswith(advice)
    home.app.pool()
    assert home.add(HALF, "half.pdf").added == 1
    assert home.waiting() == []


def test_workers_of_an_add_leave_it_to_others(home: ScanHome) -> None:
    """A drain ends while OCR waits; a pool that has it does it last."""
    home.add(HALF)
    pool = home.app.pool()
    pool.start()
    pool.drain()
    pool.shutdown()
    assert len(home.waiting()) == 1
    pool = home.app.pool(reads_files=True)
    pool.start()
    pool.drain()
    pool.shutdown()
    assert home.waiting() == []
    assert "Recognised words 2" in home.text()
    hits = home.app.searcher.search(SearchRequest(query="words"), OPERATOR).hits
    assert [(hit.page, hit.ocr) for hit in hits] == [(1, True)]


def test_a_removed_doc_stays_removed(home: ScanHome) -> None:
    """A doc that is gone before its job is done does not come back by it."""
    home.add(SCAN)
    path = home.root / "minutes.pdf"
    merged = pypdf.PdfWriter()
    merged.append(io.BytesIO(HALF))
    merged.append(io.BytesIO(SCAN))
    with path.open("wb") as file:
        merged.write(file)
    with home.app.parser() as parser:
        home.app.adder(parser, AddOptions(home=home.app.paths.root)).add([str(path)])
    assert home.recognise() == 2
    assert home.text().startswith("Typed words")
    assert home.doc().version == 3


def test_a_picture_is_read_from_its_own_file(home: ScanHome) -> None:
    """Of what it is in the home there is no copy; its day stays that of its file."""
    assert home.add(pictures.jpeg(), "sign.jpg").ocr_waiting == 1
    before = home.doc()
    assert (before.raw_path, before.by_name) == ("", True)
    assert home.recognise() == 1
    doc = home.doc()
    assert home.text() == "Recognised words 1\n\nJPEG picture, 640 × 480 pixels\n"
    assert (doc.version, doc.by_name, doc.raw_path) == (2, False, "")
    assert doc.coverage is not None
    assert doc.coverage.ocr_pages == (1,)
    assert doc.modified == before.modified is not None


def test_a_picture_that_is_gone_or_changed_is_left(home: ScanHome) -> None:
    """The job ends without a failure; the next sync sees the file as it is then."""
    home.add(pictures.jpeg(), "sign.jpg")
    (home.root / "sign.jpg").write_bytes(pictures.jpeg(size=(480, 640)))
    assert home.recognise() == 1
    assert (home.doc().version, home.waiting()) == (1, [])
    with home.app.store.read() as txn:
        assert queue.counts(txn).failed == 0
