"""What people see: one line is one line, nothing drives the terminal, the words are in view."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb_cli.errors import exit_code_of
from kb_cli.output import cells, clean, fitted, many, size
from kb_cli.snippet import flowed, snippet, wrapped
from kb_cli.words import text

from kb.errors import HeldBack, KbError, NotFound, StoreDamaged
from kb.search.index.analysis import highlight_spans


@given(st.text(st.characters(codec=None)))
def test_clean_is_one_harmless_line(said: str) -> None:
    """No control character, line end, surrogate or turn of direction is left."""
    shown = clean(said)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in shown)
    assert not any("\ud800" <= char <= "\udfff" or "\u202a" <= char <= "\u202e" for char in shown)
    shown.encode()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a b\\x0ac"),
        ("\033[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("伊利\u3000牛奶", "伊利\u3000牛奶"),
        ("non\u00a0breaking", "non\u00a0breaking"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
        ("\udcff", "\\udcff"),
    ],
)
def test_clean_keeps_what_people_write(said: str, shown: str) -> None:
    """Spaces of every kind, CJK and joined signs stay; what drives the terminal is spelt out."""
    assert clean(said) == shown


@pytest.mark.parametrize(
    ("said", "width", "shown"),
    [
        ("tea", 5, "tea  "),
        ("green tea", 6, "green…"),
        ("伊利牛奶", 5, "伊利…"),
        ("伊利牛奶", 6, "伊利… "),
        ("e\u0301te", 3, "e\u0301te"),
        ("हिन्दी", 6, "हिन्दी "),
        ("ที่นี่", 2, "ที่นี่"),
        ("\u2764\ufe0f tea", 5, "\u2764\ufe0f tea"),
        ("co\xadop", 5, "co\xadop"),
    ],
)
def test_columns(said: str, width: int, shown: str) -> None:
    """A text is fitted to columns, of which CJK characters take two and accents none."""
    assert fitted(said, width) == shown
    assert cells(shown) == width


def test_counts_and_sizes() -> None:
    """Numbers are said as people say them."""
    assert [many(n, "doc") for n in (0, 1, 2000)] == ["0 docs", "1 doc", "2,000 docs"]
    assert [size(n) for n in (0, 1023, 1536, 3 << 30)] == ["0 B", "1023 B", "1.5 KB", "3.0 GB"]


@given(st.text(st.sampled_from("ab \n伊"), max_size=300), st.integers(1, 40))
def test_rows_hold_every_word_within_the_width(said: str, width: int) -> None:
    """Rows follow each other, lose nothing but white space, and fit (a wide character aside)."""
    rows = list(wrapped(said, width))
    assert "".join("".join(said[a:b].split()) for a, b in rows) == "".join(said.split())
    assert all(cells(said[a:b]) <= max(width, 2) for a, b in rows)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(rows))


LONG = "A line of prose that somebody broke at column"


@pytest.mark.parametrize(
    ("said", "joined"),
    [
        (f"{LONG}\nfifty goes on.\n{LONG}\n\nNext.", 1),
        (f"{LONG}\n- an item\n{LONG}\n2. another\n{LONG}\n  indented", 0),
        (f"# {LONG}\ntext\n| {LONG} |\nunder", 0),
        (f"```\n{LONG}\n{LONG}\n```\n{LONG}\nend", 1),
        ("Ada Lovelace\n12 St James's Square\nLondon", 0),
        ("\u6587" * 50 + "\nwords", 0),
        (f"{LONG}  \nafter a hard break", 0),
    ],
)
def test_lines_of_a_paragraph_flow(said: str, joined: int) -> None:
    """Only line ends inside a paragraph become spaces, and no character moves."""
    text = flowed(said)
    assert text.count("\n") == said.count("\n") - joined
    assert text.replace("\n", " ") == said.replace("\n", " ")


def shown(said: str, terms: list[str], width: int = 34, rows_max: int | None = 3) -> list[str]:
    return [
        said[row.start : row.end]
        for row in snippet(said, highlight_spans(said, terms), width, rows_max=rows_max)
    ]


def test_a_short_passage_is_shown_whole() -> None:
    """What fits is shown, less its blank lines."""
    assert shown("one\n\n\ntwo", []) == ["one", "two"]


def test_the_rows_with_the_words_are_shown_in_the_middle() -> None:
    """Of many rows those around the matched words are shown, with marks at the cuts."""
    lines = [f"line {n} says nothing" for n in range(20)]
    lines[9] = "here a samovar sings"
    said = "\n".join(lines)
    rows = snippet(said, highlight_spans(said, ["samovar", "sing"]), 40, rows_max=3)
    assert [said[row.start : row.end] for row in rows] == [lines[8], lines[9], lines[10]]
    assert [(row.cut_before, row.cut_after) for row in rows] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert [said[a:b] for a, b in rows[1].spans] == ["samovar", "sings"]


def test_more_different_words_win_over_more_of_one() -> None:
    """The rows that hold most of the query's words are the ones to show."""
    said = "\n".join(["tea tea tea", *["nothing"] * 6, "green tea", *["nothing"] * 6])
    assert "green tea" in shown(said, ["green", "tea"])


def test_no_match_shows_the_start_and_whole_shows_all() -> None:
    """Without a matched word the passage is shown from its start; whole is whole."""
    said = "\n".join(f"line {n}" for n in range(9))
    assert shown(said, []) == ["line 0", "line 1", "line 2"]
    assert len(shown(said, [], rows_max=None)) == 9


def test_a_word_across_rows_is_marked_in_both() -> None:
    """A match that a row breaks is marked on both sides of the break."""
    said = "x" * 50
    rows = snippet(said, [(0, 50)], 34, rows_max=None)
    assert [row.spans for row in rows] == [((0, 30),), ((30, 50),)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KbError("it broke"), 1),
        (NotFound(id="d1"), 4),
        (StoreDamaged("bad", place="docs"), 5),
        (HeldBack("wait"), 6),
        (KeyboardInterrupt(), 130),
        (OSError(28, "No space left on device"), 1),
        (PermissionError(13, "Permission denied", "/x/y"), 1),
        (ValueError("oops"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_become_lines_and_codes(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every error is a line on standard error and its documented code."""
    assert exit_code_of(error, verbose=False) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("kb: ")
    assert "Traceback" not in said.err


def test_errors_name_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of the system says which file; with -v it says where in the program."""
    exit_code_of(PermissionError(13, "Permission denied", "/x/y"), verbose=True)
    said = capsys.readouterr().err
    assert said.startswith("kb: /x/y: Permission denied\n")
    assert "PermissionError" in said


def test_arguments_are_mended() -> None:
    """Bytes that are no UTF-8 become U+FFFD, so that they can be stored and printed."""
    assert text("caf\udce9 伊") == "caf\ufffd 伊"
