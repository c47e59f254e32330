"""Where a note may stand."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.knowledge.notebook.paths import folded, is_folder, is_index, kebab, note_path, problem_of


@pytest.mark.parametrize(
    "path",
    [
        "a.md",
        "a/b.md",
        "a/b-2/c-d.md",
        "2026/notes.md",
        "旅行/外婆.md",
        "index/index.md",
        "ñandú.md",
    ],
)
def test_a_path_that_a_note_may_have(path: str) -> None:
    """Up to three levels, lower-case words of any script, one hyphen between them."""
    assert problem_of(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "a.txt",
        "a.MD",
        ".md",
        "/a.md",
        "../a.md",
        "a/../b.md",
        "./a.md",
        "a//b.md",
        "a/.b.md",
        ".git/config.md",
        "a/b/c/d.md",
        "A.md",
        "a b.md",
        "a_b.md",
        "a--b.md",
        "-a.md",
        "a-.md",
        "a.b.md",
        "a\\b.md",
        "a\n.md",
        "a\0.md",
        "con:.md",
        "index.md",
        "x" * 85 + ".md",
        "\udcff.md",
        unicodedata.normalize("NFD", "é.md"),
    ],
)
def test_a_path_that_a_note_may_not_have(path: str) -> None:
    """Up, absolute, hidden, deep, odd, over-long, or the list itself: each is refused in words."""
    assert problem_of(path)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Buy milk & eggs", "buy-milk-eggs"),
        ("  Löwe, Ärger; Ça va?  ", "lowe-arger-ca-va"),
        ("外婆的食谱 2", "外婆的食谱-2"),
        ("C++ / Rust", "c-rust"),
        ("...", "untitled"),
        ("../../etc/passwd", "etc-passwd"),
        ("ﬁne ＦＵＬＬ", "fine-full"),
        ("한국어", "한국어"),
    ],
)
def test_a_title_becomes_a_name(title: str, expected: str) -> None:
    """Accents go, other scripts stay, everything else parts words; the result is always valid."""
    assert kebab(title) == expected
    assert problem_of(f"{expected}.md") is None


@given(st.text(max_size=120))
def test_any_title_becomes_a_name(title: str) -> None:
    """Whatever a person calls a note, its name is one that a note may have."""
    assert problem_of(f"{kebab(title)}.md") in (None, problem_of("index.md"))


def test_a_long_title_is_cut() -> None:
    """A name of any title fits, whatever the script."""
    assert problem_of(f"{kebab('长' * 500)}.md") is None
    assert problem_of(f"{kebab('word ' * 500)}.md") is None


def test_a_taken_name_gets_a_number() -> None:
    """The first free number follows; past all of them the key, and nothing where that is taken."""
    assert note_path("a", "T", set(), "k") == "a/t.md"
    assert note_path("a", "T", {"a/t.md", "a/t-2.md"}, "k") == "a/t-3.md"
    assert note_path("", "Index", set(), "k") == "index-2.md"

    class All:
        def __contains__(self, path: object) -> bool:
            return path != "a/t-j1.md"

    assert note_path("a", "T", All(), "j1") == "a/t-j1.md"
    assert note_path("a", "T", All(), "j2") is None


def test_what_one_file_system_takes_for_the_same() -> None:
    """Case and composition make no difference there."""
    assert folded("Été/A.md") == folded(unicodedata.normalize("NFD", "éTÉ/a.MD"))
    assert is_index("Index.MD")
    assert not is_index("a/INDEX.md")


def test_a_folder_for_notes() -> None:
    """Two levels at most, so that a note fits below."""
    assert is_folder("a/b")
    assert not is_folder("a/b/c")
    assert not is_folder("My Notes")
