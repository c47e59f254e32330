"""In which order is a page of a PDF read, and what of it is left out?"""

import pytest
from pdf_shapes import at, drawn, lines, writer, written

from kb.intake.canonicalize import CanonicalizeInput, canonicalize
from kb.model.text import Canonical

LEFT = (
    "The house stands on a hill",
    "above the river, and its",
    "garden goes down to the",
    "water in four steps.",
)
RIGHT = (
    "It was built of stone from",
    "the quarry across the road,",
    "which closed before the war",
    "and is a pond today.",
)
IN_ORDER = (
    "The house stands on a hill above the river, and its garden goes down to the water in four "
    "steps.\nIt was built of stone from the quarry across the road, which closed before the war "
    "and is a pond today.\n"
)


def read(data: bytes) -> Canonical:
    return canonicalize(CanonicalizeInput(data=data, mime="application/pdf", name="page.pdf"))


def row(number: int) -> str:
    """One line of each column."""
    return lines(LEFT[number : number + 1], y=700 - 14 * number) + lines(
        RIGHT[number : number + 1], x=320, y=700 - 14 * number
    )


@pytest.mark.parametrize(
    "page",
    [
        lines(LEFT) + lines(RIGHT, x=320),
        "".join(map(row, range(4))),
        "".join(map(row, reversed(range(4)))),
    ],
    ids=["by columns", "by rows", "from below"],
)
def test_columns_are_read_one_after_the_other(page: str) -> None:
    """In whatever order a page draws two columns, the left one is read first, then the right."""
    assert read(drawn(page)).markdown == IN_ORDER


def test_a_head_over_both_columns_comes_first() -> None:
    """A line across both columns stays above them, and one below them stays below."""
    page = (
        at(50, 740, "A heading that goes across both of the columns, from the left to the right.")
        + "".join(map(row, range(4)))
        + at(50, 600, "After both columns, a line that is as wide as the page is, once more.")
    )
    head, *body, foot = read(drawn(page)).markdown.strip("\n").split("\n")
    assert head.startswith("A heading")
    assert foot.startswith("After both")
    assert "\n".join(body).strip("\n") == IN_ORDER.rstrip("\n")


def test_rows_of_a_table_are_lines() -> None:
    """Cells that gaps part stand in the line of their row, and rows are not run together."""
    cells = [("Room", "Area", "Heated"), ("kitchen", "14 m2", "yes"), ("cellar", "30 m2", "no")]
    page = "".join(
        at(50 + 150 * column, 700 - 14 * number, cell)
        for number, texts in enumerate(cells)
        for column, cell in enumerate(texts)
    )
    assert read(drawn(page)).markdown == "".join(f"{' | '.join(texts)}\n" for texts in cells)


def test_cells_of_one_operator_are_parted() -> None:
    """A gap inside of what is drawn at once parts cells, too."""
    page = "BT /F1 12 Tf 50 500 Td [(First) -9000 (Second) -9000 (Third)] TJ ET"
    assert read(drawn(page)).markdown == "First | Second | Third\n"


def test_the_mark_of_a_list_is_no_cell() -> None:
    """A number or a bullet is kept with what it marks, however wide the gap is."""
    page = at(50, 700, "1.") + at(90, 700, "Heat") + at(50, 686, "2.") + at(90, 686, "Water")
    assert read(drawn(page)).markdown == "1. Heat\n2. Water\n"


def test_a_heading_of_two_lines_is_one() -> None:
    """The lines of a heading, which are further apart than those of the text, are mended."""
    heading = at(50, 700, "How the roof was mended and the environ-", 18)
    page = heading + at(50, 679, "ment of the house", 18) + lines(LEFT, y=640)
    assert read(drawn(page)).markdown.startswith(
        "How the roof was mended and the environment of the house\n\nThe house"
    )


@pytest.mark.parametrize(
    ("turn", "matrix"),
    [(90, "0 1 -1 0 600 0"), (180, "-1 0 0 -1 600 800"), (270, "0 -1 1 0 0 800")],
)
def test_a_turned_page_is_read_as_it_is_shown(turn: int, matrix: str) -> None:
    """Columns and cells are found on a page that is turned to be read."""
    made = writer(f"q {matrix} cm\n{''.join(map(row, range(4)))}Q")
    made.pages[0].rotate(turn)
    assert read(written(made)).markdown == IN_ORDER


def test_a_stamp_at_the_side_comes_last() -> None:
    """A line that is written upwards does not hide the columns beside it."""
    stamp = "BT /F1 12 Tf 0 1 -1 0 20 200 Tm (preprint of the fourth of May) Tj ET\n"
    page = stamp + "".join(map(row, range(4)))
    assert read(drawn(page)).markdown == f"{IN_ORDER}preprint of the fourth of May\n"


def test_a_wide_space_parts_paragraphs() -> None:
    """Paragraphs are parted by an empty line; lines of one are not."""
    page = lines(["One line.", "Next line."]) + lines(["Other paragraph.", "Its end."], y=650)
    assert read(drawn(page)).markdown == ("One line.\nNext line.\n\nOther paragraph.\nIts end.\n")


def test_hyphens_at_the_ends_of_lines_are_mended() -> None:
    """A broken word is one word again; a number's or a name's hyphen is kept."""
    page = lines(["It is a long hyphen-", "ated word on pages 10-", "20 in New-", "York."])
    assert (
        read(drawn(page)).markdown
        == "It is a long hyphenated word on pages 10-\n20 in New-\nYork.\n"
    )


def test_raised_letters_stay_with_their_word() -> None:
    """A power is not parted from what it is the power of."""
    page = at(50, 700, "It has 30 m") + at(109.5, 705, "2", 7) + at(117, 700, "of floor")
    assert read(drawn(page)).markdown == "It has 30 m2 of floor\n"


def test_the_mark_of_a_note_is_no_part_of_its_first_word() -> None:
    """A small raised number before a text is parted from it."""
    assert read(drawn(at(50, 708, "1", 6) + at(54, 700, "The roof is new."))).markdown == (
        "1 The roof is new.\n"
    )


def test_cells_without_a_letter_to_show_do_no_harm() -> None:
    """A cell of controls alone is no cell."""
    page = at(50, 700, "\x01 \x01") + at(200, 700, "first") + at(350, 700, "second")
    assert read(drawn(page)).markdown == "first | second\n"


def book(pages: int, head: str = "House book") -> bytes:
    return drawn(
        *(
            at(50, 770, f"{head}")
            + lines([f"Chapter text {'abcdefgh'[number]} is here.", f"It goes on to {number}0."])
            + at(290, 30, f"{number + 107}")
            for number in range(pages)
        )
    )


def test_running_heads_stand_once() -> None:
    """A line at the edge of most pages is read on its first page alone, page numbers on none."""
    markdown = read(book(6)).markdown
    assert markdown.count("House book") == 1
    assert markdown.startswith("House book\n")
    assert not any(str(number + 107) in markdown for number in range(6))
    assert [page.strip().splitlines()[-1] for page in markdown.split("\f")] == [
        f"It goes on to {number}0." for number in range(6)
    ]


def test_page_numbers_in_a_head_do_not_hide_it() -> None:
    """A head with the page's number in it is seen as one."""
    pages = [
        lines([f"Survey, page {number + 1} of 5"], y=770) + lines([f"Finding {'abcde'[number]}."])
        for number in range(5)
    ]
    markdown = read(drawn(*pages)).markdown
    assert markdown.count("Survey, page") == 1
    assert all(f"Finding {letter}." in markdown for letter in "abcde")


def test_heads_of_left_and_right_pages() -> None:
    """Pages of a book may have one head on the left and one on the right."""
    pages = [
        at(50, 770, ("The author", "The title")[number % 2])
        + lines([f"Text {'abcdefgh'[number]}."])
        for number in range(8)
    ]
    markdown = read(drawn(*pages)).markdown
    assert (markdown.count("The author"), markdown.count("The title")) == (1, 1)


def test_what_differs_is_no_head() -> None:
    """Rows that count up, and values that are there by chance, are not taken for page numbers."""
    pages = [lines([f"Row {number * 3 + add}" for add in (1, 2, 3)]) for number in range(5)]
    markdown = read(drawn(*pages)).markdown
    assert all(f"Row {number}" in markdown.split("\n") for number in range(1, 16))


def test_pages_of_nothing_but_a_head_keep_it() -> None:
    """No page is emptied for being like the others."""
    result = read(drawn(*[lines(["Same words here"])] * 4))
    assert result.markdown.count("Same words here") == 4
