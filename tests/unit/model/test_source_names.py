"""How a source is named."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.model.ids import Lsid
from kb.model.origin import origin_id
from kb.model.source import display_name, file_lsid, owned_lsid, path_of
from kb.model.text import indexed_text


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=20).filter(lambda raw: b"\0" not in raw))
def test_any_file_name_survives(raw: bytes) -> None:
    """Path to source id and back is the same path, whatever bytes its name has."""
    path = Path("/notes") / raw.decode("utf-8", "surrogateescape").replace("/", "_")
    lsid = file_lsid(path)
    assert lsid.isascii()
    assert path_of(lsid) == path


@pytest.mark.parametrize("lsid", ["https://example.org/a", "stdin:abc", "", "/plain"])
def test_what_is_no_file_has_no_path(lsid: str) -> None:
    """Only file URIs name files."""
    assert path_of(Lsid(lsid)) is None


def test_names_for_people() -> None:
    """A path is shown as it is, or as its URI where it is not valid UTF-8."""
    assert display_name(Path("/notes/标.md")) == "/notes/标.md"
    assert display_name(Path("/notes/\udcff.md")) == "file:///notes/%FF.md"


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("T", ("A", "B"), "T > A > B\nx"),
        ("T", ("T", "B"), "T > B\nx"),
        ("", ("A",), "A\nx"),
        ("T", (), "T\nx"),
        ("", (), "x"),
        ("", ("", ""), "x"),
    ],
)
def test_the_text_that_is_indexed(title: str, heading: tuple[str, ...], expected: str) -> None:
    """Title and headings stand in front, each once, and nothing stands in front of nothing."""
    assert indexed_text(title, heading, "x") == expected


def test_what_is_handed_in_is_its_owners() -> None:
    """A source has another id for each user, and the local user's is the one of the machine."""
    assert owned_lsid(None, "url:a") == owned_lsid("local", "url:a") == "url:a"
    named = {owned_lsid(user, "url:a") for user in ("ada", "bob", "ada/url:b", "", "a d")}
    assert len(named) == 5
    assert owned_lsid("ada", "x/url:a") != owned_lsid("ada/x", "url:a")
    assert origin_id("url", "a", "local") == origin_id("url", "a") != origin_id("url", "a", "ada")
