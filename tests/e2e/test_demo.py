"""The demonstration: what it shows is real, and it can fail."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kb.intake.canonicalize.parsers import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/demo.py"
FORMATS = ROOT / "examples/formats"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_question_finds_its_file_first(tmp_path: Path) -> None:
    """`make demo` answers every question it asks, whatever the user has set for kb."""
    environment = {**os.environ, "KB_HOME": str(tmp_path / "not-this"), "KB_CFG": "search.k=wrong"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert "$ kb add examples\n62 added, 2 skipped of 64 scanned" in done.stdout
    assert "55 of 55 found" in done.stdout
    assert not (tmp_path / "not-this").exists()


def test_every_format_that_is_read_has_an_example(demo: ModuleType) -> None:
    """All but those that need another program; and each example is asked for."""
    endings = {path.suffix.lstrip(".") for path in (ROOT / "examples").rglob("*.*")}
    others = ("old document", "old slides", "djvu")
    formats = {name: own for name, own in BUILT_IN.items() if name not in others}
    lacking = [
        name
        for name, own in formats.items()
        if own.extensions and not endings & own.extensions.keys()
    ]
    assert lacking == []
    assert {path.name for path in FORMATS.iterdir()} == set(demo.FORMATS)
    assert sum(path.stat().st_size for path in FORMATS.iterdir()) < 300_000


def test_the_example_files_are_what_their_script_writes(tmp_path: Path) -> None:
    """Those that are no text, byte for byte."""
    script = ROOT / "scripts/make_example_files.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=60)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(made) > 10
    assert made == {name: (FORMATS / name).read_bytes() for name in made}


def found(source: str, page: int | None) -> dict[str, Any]:
    return {"hits": [{"source": source, "page": page}]}


def test_another_file_another_page_and_nothing_are_no_answers(demo: ModuleType) -> None:
    """The demonstration tells a wrong first hit from the right one."""
    question = next(q for q in demo.QUESTIONS if q.page)
    source = str(ROOT / "examples" / question.file)
    assert demo.is_answered(found(source, question.page), question)
    assert not demo.is_answered(found(source, question.page + 1), question)
    assert not demo.is_answered(found(f"{source}.bak", question.page), question)
    assert not demo.is_answered({"hits": []}, question)


def test_the_example_pdf_is_what_its_script_writes(tmp_path: Path) -> None:
    """The PDF in examples/ comes from the script beside the others, byte for byte."""
    target = tmp_path / "again.pdf"
    script = ROOT / "scripts/make_example_pdf.py"
    subprocess.run([sys.executable, str(script), str(target)], check=True, capture_output=True)
    assert target.read_bytes() == (ROOT / "examples/house/energy-survey.pdf").read_bytes()


def test_the_examples_cover_every_format() -> None:
    """Each extension's format that kb reads has an example, in at most 64 KB altogether."""
    files = [path for path in (ROOT / "examples").rglob("*") if path.is_file()]
    suffixes = {path.suffix for path in files}
    assert suffixes >= {".md", ".markdown", ".txt", ".html", ".xhtml", ".pdf"}
    assert sum(path.stat().st_size for path in files) < 64_000
