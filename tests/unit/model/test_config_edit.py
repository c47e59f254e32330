"""One setting of a TOML file is changed; the rest of the text stays, byte for byte."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.model.config.edit import TextTooComplex, literal, with_value, without_value

TEXT = """\
# Mine.
[search]
rrf_k = 70   # more than "60" # really
fusion = "a # b"  # no comment in it

# Of fetches.
[fetch]
allow = [
  "a",  # first
  "b",
]  # all

[kb.topic.style]
subjects = "texts"
"""


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        ("search.rrf_k", 3, "rrf_k = 70   #", "rrf_k = 3   #"),
        ("search.fusion", "x", '"a # b"  # no', '"x"  # no'),
        ("search.candidates", 9, "in it\n", "in it\ncandidates = 9\n"),
        ("fetch.allow", ["c"], '[\n  "a",  # first\n  "b",\n]  # all', '["c"]  # all'),
        ("fetch.robots", False, "]  # all\n", "]  # all\nrobots = false\n"),
        ("kb.topic.style.index", True, '"texts"\n', '"texts"\nindex = true\n'),
        ("llm.model", 'q"7', '"texts"\n', '"texts"\n\n[llm]\nmodel = "q\\"7"\n'),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_value_is_put_in_its_place(
    path: str, value: Any, before: str, after: str, line_end: str
) -> None:
    """Where the setting is, else behind the last of its table, else in a table at the end."""
    text, expected = TEXT, TEXT.replace(before, after, 1)
    assert expected != text
    changed = with_value(text.replace("\n", line_end), tuple(path.split(".")), value)
    assert changed == expected.replace("\n", line_end)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("search.rrf_k", 'rrf_k = 70   # more than "60" # really\n'),
        ("fetch.allow", 'allow = [\n  "a",  # first\n  "b",\n]  # all\n'),
    ],
)
def test_a_setting_is_taken_out_with_its_lines(path: str, line: str) -> None:
    """And with nothing else."""
    assert without_value(TEXT, tuple(path.split("."))) == TEXT.replace(line, "")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "# one\n"])
def test_a_file_without_settings_gets_a_table(text: str) -> None:
    """What was there stays in front."""
    changed = with_value(text, ("search", "rrf_k"), 3)
    assert changed.startswith(text.rstrip("\n"))
    assert changed.endswith("[search]\nrrf_k = 3\n")


@pytest.mark.parametrize(
    "text",
    [
        "search = {rrf_k = 1, mmr_crowd = 2}\n",
        "search = {rrf_k = 1}\n",
    ],
)
def test_a_form_that_is_too_complex_is_left_to_a_person(text: str) -> None:
    """Nothing is guessed, and nothing is lost."""
    with pytest.raises(TextTooComplex):
        with_value(text, ("search", "rrf_k"), 3)
    with pytest.raises(TextTooComplex):
        with_value(text, ("search", "fusion"), "x")


def test_a_dotted_key_is_changed_where_it_is() -> None:
    """A table need not have a header."""
    assert with_value("search.rrf_k=1 # x\n", ("search", "rrf_k"), 3) == "search.rrf_k=3 # x\n"


VALUES = st.one_of(
    st.text(st.characters(codec="utf-8")),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(value=st.one_of(VALUES, st.lists(VALUES, max_size=4)))
def test_every_value_comes_back_as_it_was_written(value: Any) -> None:
    """Whatever characters a text has."""
    assert tomllib.loads(f"x = {literal(value)}")["x"] == value
    changed = with_value(TEXT, ("search", "fusion"), value)
    assert tomllib.loads(changed)["search"]["fusion"] == value
