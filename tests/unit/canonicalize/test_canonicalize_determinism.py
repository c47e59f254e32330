"""The same bytes on every run, and nothing heavy before it is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kb.intake import canonicalize

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT.parent / "shared" / "data" / "files"
HEAVY = (
    "yaml",
    "tomllib",
    "trafilatura",
    "lxml",
    "pypdf",
    "pypdfium2",
    "chardet",
    "html.entities",
)

# Reads every file it is given, years from now by its clock, and prints a digest of each result.
DIGEST = """
import hashlib, sys, time
real = time.time
time.time = lambda: real() + float(sys.argv[1]) * 86400 * 365
from kb.intake.canonicalize import CanonicalizeInput, canonicalize, detect_mime
import msgspec
for path in sys.argv[2:]:
    data = open(path, "rb").read()
    source = CanonicalizeInput(data=data, mime=detect_mime(data, path), name=path)
    print(hashlib.sha256(msgspec.json.encode(canonicalize(source))).hexdigest())
"""
PAGE = """<html><head><title>T</title></head><body><article><h1>H</h1><p>Posted today. {}</p>
<ul><li>one</li><li>two</li></ul><table><tr><td>a</td><td>b</td></tr></table></article>"""


def digests(paths: list[Path], *, seed: str, zone: str, years: int) -> list[str]:
    env = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-W", "ignore", "-c", DIGEST, str(years), *map(str, paths)]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.split()


def assert_same_everywhere(paths: list[Path]) -> None:
    here = digests(paths, seed="1", zone="Pacific/Kiritimati", years=0)
    there = digests(paths, seed="2", zone="America/Anchorage", years=7)
    assert len(here) == len(paths)
    assert here == there


def test_same_bytes_in_any_process(tmp_path: Path) -> None:
    """Hash seed, time zone and date do not change a byte."""
    page, note, legacy = tmp_path / "p.html", tmp_path / "n.md", tmp_path / "l.txt"
    page.write_text(PAGE.format("Some words about the subject, and more of them. " * 30))
    note.write_text("---\ntags: [b, a, c]\ndate: 2024-01-01\n---\n# T\n")
    legacy.write_bytes("Grüße, déjà vu".encode("cp1252"))
    assert_same_everywhere([page, note, legacy])


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no sample files beside the repository")
def test_same_bytes_of_real_pages() -> None:
    """The same holds for real pages, PDFs and legacy text."""
    found = [
        *SAMPLES.glob("**/*.html"),
        *SAMPLES.glob("**/sample-*.txt"),
        *SAMPLES.glob("**/00[1-4]*/*.pdf"),
    ]
    assert found
    assert_same_everywhere(sorted(found))


def test_import_is_light() -> None:
    """Importing the room loads none of the libraries that read formats."""
    code = f"import sys, kb.intake.canonicalize; print([m for m in {HEAVY!r} if m in sys.modules])"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", code]
    out = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_all_is_what_there_is() -> None:
    """Every name of `__all__` exists."""
    assert all(hasattr(canonicalize, name) for name in canonicalize.__all__)
