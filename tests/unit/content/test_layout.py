"""Where a home's files lie, and what they are called."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.model.ids import sha256_hex
from kb.store.content.layout import HomePaths, markdown_path, raw_path, slug


def test_the_folders_of_a_home(tmp_path: Path) -> None:
    """Making a home makes its folders for their owner only; again is harmless."""
    paths = HomePaths(tmp_path / "deep" / "home")
    paths.make()
    paths.make()
    folders = sorted(path.name for path in paths.root.iterdir())
    assert folders == ["index", "md", "raw", "store", "tmp"]
    assert {path.stat().st_mode & 0o777 for path in paths.root.iterdir()} == {0o700}
    assert (paths.store, paths.index) == (paths.root / "store", paths.root / "index")
    assert (paths.tmp, paths.config) == (paths.root / "tmp", paths.root / "kb.toml")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Release Notes 2.0", "release-notes-2-0"),
        ("知识库 搜索", "知识库-搜索"),
        ("Ｆｕｌｌ　Ｗｉｄｔｈ", "full-width"),
        ("Straße", "strasse"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "untitled"),
        ("", "untitled"),
        (" \n\t", "untitled"),
        ("---", "untitled"),
        ("snake_case", "snake-case"),
        ("a\0b", "a-b"),
        ("a\udcffb", "a-b"),
        ("x" * 500, "x" * 80),
        ("标" * 500, "标" * 26),
        ("x" * 79 + " y", "x" * 79),
    ],
)
def test_slugs(title: str, expected: str) -> None:
    """Letters, digits and hyphens of any script, cut at 80 bytes between characters."""
    assert slug(title) == expected


@settings(deadline=None)
@given(st.text(max_size=300))
def test_a_slug_is_one_safe_name(title: str) -> None:
    """Whatever the title: not empty, at most 80 bytes, no separator, no dot, the same again."""
    made = slug(title)
    assert 1 <= len(made.encode()) <= 80
    assert re.fullmatch(r"(?:[^\W_]|-)+", made)
    assert slug(title) == made


def test_markdown_paths_follow_source_and_text() -> None:
    """Same source and text, same path; another of either, another path."""
    path = markdown_path("file", "My Note", "file:///a", "text")
    lsid8, md8 = sha256_hex("file:///a")[:8], sha256_hex("text")[:8]
    assert path == f"md/file/my-note--{lsid8}--{md8}.md"
    others = {
        markdown_path("file", "My Note", "file:///b", "text"),
        markdown_path("file", "My Note", "file:///a", "text 2"),
    }
    assert len({path, *others}) == 3


def test_a_markdown_path_stays_in_its_folder() -> None:
    """A title made to climb out does not."""
    assert markdown_path("url", "../../../x", "l", "t").count("/") == 2


@pytest.mark.parametrize(
    ("extension", "expected"),
    [
        ("md", "md"),
        (".PDF", "pdf"),
        ("", "bin"),
        ("../x", "x"),
        ("标", "bin"),
        ("a" * 99, "a" * 10),
    ],
)
def test_raw_paths(extension: str, expected: str) -> None:
    """raw/, two digits, the hash and a plain short extension."""
    digest = sha256_hex(b"x")
    assert raw_path(digest, extension) == f"raw/{digest[:2]}/{digest}.{expected}"
