"""The site of the documentation: it has every page, and its builder finds what leads nowhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CONFIG: Final = (ROOT / "mkdocs.yml").read_text("utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A repository with the documents alone."""
    for name in ("docs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, folder / "scripts/build_site.py"], capture_output=True, encoding="utf-8"
    )


def test_the_site_has_every_page() -> None:
    """The menu names each page of docs/, and no other."""
    named = set(re.findall(r"([\w/.-]+\.md)\s*$", CONFIG, re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages = {page for page in pages if not page.startswith("reference/parts/")}
    assert named == pages | {"index.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}


def test_the_site_is_built_without_a_warning(copy: Path) -> None:
    """All links of the documents lead somewhere, and the README is the first page."""
    done = built(copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert "The first five minutes" in (copy / "build/site/index.html").read_text("utf-8")


def test_links_that_lead_nowhere_stop_the_build(copy: Path) -> None:
    """A page that is not there, and a heading that a page does not have: each is named."""
    with (copy / "docs/measured.md").open("a", encoding="utf-8") as page:
        page.write("\n[there](spaces.md#nowhere) and [there](not-written.md)\n")
    done = built(copy)
    assert done.returncode == 1
    assert "spaces.md#nowhere" in done.stderr
    assert "not-written.md" in done.stderr
