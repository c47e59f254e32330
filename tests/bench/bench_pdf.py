"""What the reader of PDFs finds and costs beside pdftotext, over the PDFs of a folder.

Recall is the share of pdftotext's words, each as often as it stands there, that the reader has too,
before repeated heads are left out. The reader of before, pypdf alone, is measured beside it where
`--old` asks for it, for at most a minute a file. Run with `make bench-pdf DATA=DIR`.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import SourceError
from kb.intake.canonicalize.pdf.document import read
from kb.intake.canonicalize.pdf.layout import page_text
from kb.intake.canonicalize.pdf.pages import open_pdf, read_pages
from kb.intake.canonicalize.pdf.pdfium_file import READING
from kb.intake.canonicalize.pdf.pypdf_file import PypdfFile

RECALL_MEDIAN_MIN: Final = 1.0
RECALL_MEAN_MIN: Final = 0.93
TIME_RATIO_MAX: Final = 2.0
LOW: Final = 0.9
PDFTOTEXT_S_MAX: Final = 120
OLD_S_MAX: Final = 60
_WORD: Final = re.compile(r"\w+")


class Measured(Struct, frozen=True):
    """One reading of one file."""

    words: Counter[str]
    pages: int
    cpu_s: float


def words_of(text: str) -> Counter[str]:
    """Its words, folded, each with how often it stands there."""
    return Counter(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def timed(read_text: Callable[[], tuple[str, int]]) -> Measured:
    """What a reader in this process finds, and what it costs."""
    began = time.process_time()
    try:
        text, pages = read_text()
    except Exception:
        text, pages = "", 0
    return Measured(words_of(text), pages, time.process_time() - began)


def by_kb(data: bytes) -> tuple[str, int]:
    """The text of all pages, heads included."""
    with READING, open_pdf(data, "file.pdf") as pdf:
        pages = read_pages(pdf)
    return "\n".join(map(page_text, pages.laid)), pages.total


def by_pypdf(data: bytes) -> tuple[str, int]:
    """The same by pypdf alone."""
    texts = []
    until = time.process_time() + OLD_S_MAX
    with PypdfFile(data, "file.pdf") as pdf:
        for number in range(pdf.page_count):
            if time.process_time() > until:
                break
            texts += [line.text for line in pdf.read_page(number).lines]
        return "\n".join(texts), pdf.page_count


def by_pdftotext(path: Path) -> Measured:
    """The same by pdftotext, its start included."""
    before = os.times()
    try:
        done = subprocess.run(
            ["pdftotext", str(path), "-"], capture_output=True, timeout=PDFTOTEXT_S_MAX, check=False
        )
        text = done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        text = ""
    after = os.times()
    cpu_s = after.children_user + after.children_system
    return Measured(
        words_of(text), text.count("\f"), cpu_s - before.children_user - before.children_system
    )


def recall(wanted: Counter[str], found: Counter[str]) -> float | None:
    """The share of the wanted words that were found; None if none are wanted."""
    total = wanted.total()
    return (wanted & found).total() / total if total else None


class Side:
    """The sums of one reader over all files."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.recalls: list[float] = []
        self.low: list[str] = []
        self.cpu_s = 0.0
        self.pages = 0

    def take(self, path: Path, wanted: Counter[str], found: Measured) -> None:
        """Count one file."""
        self.cpu_s += found.cpu_s
        self.pages += found.pages
        share = recall(wanted, found.words)
        if share is not None:
            self.recalls.append(share)
            if share < LOW:
                self.low.append(f"{path.name} {share:.3f}")

    def shown(self) -> str:
        """A line for people."""
        if not self.recalls:
            return f"{self.name:10} no text anywhere"
        return (
            f"{self.name:10} recall: median {statistics.median(self.recalls):.3f}, mean "
            f"{statistics.mean(self.recalls):.3f}, {len(self.low)} of {len(self.recalls)} below "
            f"{LOW}; {self.cpu_s:.2f} s, {1000 * self.cpu_s / max(self.pages, 1):.2f} ms a page"
        )


def main() -> int:
    """Measure; the exit status is 1 where a bound is missed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--old", action="store_true", help="measure pypdf alone, too")
    given = asked.parse_args()
    if shutil.which("pdftotext") is None:
        print("skipped: pdftotext is not installed (Debian has it in poppler-utils)")
        return 0
    paths = sorted(path for path in given.folder.rglob("*") if path.suffix.lower() == ".pdf")
    if not paths:
        print(f"skipped: no PDF below {given.folder}")
        return 0
    new, theirs = Side("kb"), Side("pdftotext")
    sides = [new, *([Side("pypdf")] if given.old else [])]
    # What importing costs is paid once a process, not for a file.
    timed(lambda: by_kb(paths[0].read_bytes()))
    for path in paths:
        data = path.read_bytes()
        wanted = by_pdftotext(path)
        theirs.take(path, wanted.words, wanted)
        new.take(path, wanted.words, timed(lambda data=data: by_kb(data)))
        for old in sides[1:]:
            old.take(path, wanted.words, timed(lambda data=data: by_pypdf(data)))
        try:
            read(data, path.name)
        except SourceError as error:
            print(f"refused    {error}")
    for side in (*sides, theirs):
        print(side.shown())
    print("below:", "; ".join(new.low) or "none")
    return missed(new, theirs)


def missed(new: Side, theirs: Side) -> int:
    """1 where a bound is missed, having said which."""
    ratio = new.cpu_s / max(theirs.cpu_s, 0.01)
    print(f"processor time beside pdftotext: {ratio:.2f}")
    faults = [
        f"{what} is {value:.3f}, not {bound}"
        for what, value, bound in (
            ("median", statistics.median(new.recalls), RECALL_MEDIAN_MIN),
            ("mean", statistics.mean(new.recalls), RECALL_MEAN_MIN),
        )
        if round(value, 3) < bound
    ]
    if ratio > TIME_RATIO_MAX:
        faults.append(f"processor time is {ratio:.2f} times pdftotext's, not {TIME_RATIO_MAX}")
    for fault in faults:
        print("MISSED:", fault)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
