"""Readers of formats that are text: each with what its specification allows, and with damage."""

# Long because each format stands here whole, before and after.

import contextlib
import json
from textwrap import dedent

import pytest

from kb.errors import SourceError, Unparsable
from kb.intake.canonicalize.parsers import TextTooLong, parser_table, reader
from kb.model.text import Canonical

READABLE = (
    "srt",
    "vtt",
    "ics",
    "json",
    "jsonl",
    "yaml",
    "toml",
    "org",
    "rst",
    "adoc",
    "tex",
    "rtf",
)


def read(ending: str, text: str | bytes, name: str | None = None) -> Canonical:
    table = parser_table()
    data = text.encode() if isinstance(text, str) else text
    read_one = reader(table.by_mime[table.mime_of[ending]])
    return read_one(data, name or f"file.{ending}", None)


def test_subtitles_are_running_text() -> None:
    """A time for each minute; no numbers, styles or repeats; a speaker once."""
    said = read(
        "srt",
        "1\r\n00:00:01,000 --> 00:00:03,000\r\n<i>Good</i> morning,\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:05,000\r\n<i>Good</i> morning,\r\n{\\an8}all of you.\r\n\r\n"
        "3\r\n00:01:30,500 --> 00:01:32,000\r\nSecond minute &amp; more.\r\n",
    )
    assert said.markdown == (
        "[0:00:01] Good morning, all of you.\n\n[0:01:30] Second minute & more.\n"
    )
    spoken = read(
        "vtt",
        "WEBVTT\n\nNOTE not said\n\nSTYLE\n::cue {}\n\nintro\n00:01.000 --> 00:02.000 align:start\n"
        "<v.loud Ann Lee>Hello <c.x>there</c>\n\n00:02.000 --> 00:03.000\n<v Ann Lee>again\n\n"
        "00:03.000 --> 00:04.000\n<v Bo>Yes",
    )
    assert spoken.markdown == "[0:00:01] Ann Lee: Hello there again Bo: Yes\n"


def test_a_calendar_is_a_section_for_each_entry() -> None:
    """Lines are unfolded, signs unescaped, times said as people do; an alarm is no entry."""
    calendar = read(
        "ics",
        "BEGIN:VCALENDAR\r\nX-WR-CALNAME:Home\r\nBEGIN:VEVENT\r\nSUMMARY:Dentist\\, again\r\n"
        "DTSTART;TZID=Europe/Berlin:20261122T090000\r\nDTEND:20261122T080000Z\r\n"
        "LOCATION:Mill Str\r\n eet 3\r\n"
        'ORGANIZER;CN="Lee, Ann":mailto:ann@x.example\r\nDESCRIPTION:Bring\\nthe card\r\n'
        "BEGIN:VALARM\r\nDESCRIPTION:Beep\r\nEND:VALARM\r\nEND:VEVENT\r\n"
        "BEGIN:VTODO\r\nSUMMARY:Taxes\r\nDUE;VALUE=DATE:20270331\r\nEND:VTODO\r\nEND:VCALENDAR\r\n",
    )
    assert calendar.title == "Home"
    assert calendar.markdown == (
        "## Dentist, again\n\nWhen: 2026-11-22 09:00 Europe/Berlin  \n"
        "Until: 2026-11-22 08:00 UTC  \n"
        "Where: Mill Street 3  \nOrganizer: Lee, Ann <ann@x.example>\n\nBring\nthe card\n\n"
        "## Taxes\n\nDue: 2027-03-31\n"
    )
    with pytest.raises(Unparsable, match="no calendar"):
        read("ics", "SUMMARY:x")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("FREQ=WEEKLY;BYDAY=TH;UNTIL=20270101T000000Z", "every week on Thursday until 2027-01-01"),
        ("FREQ=MONTHLY;INTERVAL=2;BYDAY=-1FR,2MO", "every 2 months on last Friday, second Monday"),
        ("FREQ=DAILY;COUNT=5", "every day, 5 times"),
        ("FREQ=YEARLY;BYMONTH=3", "FREQ=YEARLY;BYMONTH=3"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_repetition_is_said_as_people_do(rule: str, said: str) -> None:
    """One that is more complicated stands as it is written; exceptions are named."""
    event = f"BEGIN:VEVENT\nSUMMARY:Choir\nRRULE:{rule}\nEXDATE:20261224T193000,20261231T193000\n"
    calendar = read("ics", f"BEGIN:VCALENDAR\n{event}END:VEVENT\nEND:VCALENDAR\n")
    assert f"Repeats: {said}  \nNot on: 2026-12-24, 2026-12-31" in calendar.markdown


def test_json_is_sections_and_tables() -> None:
    """Records are rows, encoded bytes are counted, and the title is what it calls itself."""
    data = {
        "title": "Fleet",
        "size": 2,
        "image": "A" * 500,
        "boats": [{"name": "Ada", "keel": "oak"}, {"name": "Bo", "keel": None, "sails": True}],
        "log": [{"title": "Day one", "crew": ["Ann", "Lee"]}],
        "none": None,
    }
    read_data = read("json", json.dumps(data))
    assert read_data.title == "Fleet"
    assert read_data.markdown == dedent("""\
        - title: Fleet
        - size: 2
        - image: [500 characters]

        ## boats

        | name | keel | sails |
        | --- | --- | --- |
        | Ada | oak |  |
        | Bo |  | true |

        ## log

        ### Day one

        - title: Day one

        #### crew

        - Ann
        - Lee
        """)
    lines = read("jsonl", '{"a": 1, "b": "x"}\nnot json\n{"a": 2}\n')
    assert "not json" in lines.markdown
    assert "- a: 2" in lines.markdown


def test_settings_stay_as_they_are_written() -> None:
    """With comments; what is one long run of letters is counted."""
    text = f"# why\nkey: value\nblob: {'x' * 300}\n"
    assert (
        read("yaml", text).markdown == "```yaml\n# why\nkey: value\nblob: [300 characters]\n```\n"
    )
    assert read("toml", "[a]\nb = 1\n").markdown.startswith("```toml\n[a]")


def test_an_org_file_is_an_outline() -> None:
    """States, drawers and comments are left out; tags, title and date are its own."""
    org = read(
        "org",
        dedent("""\
        #+TITLE: Garden
        #+DATE: <2026-03-04 Wed>
        #+FILETAGS: :home:
        # not said
        * TODO [#A] Beds :spring:
        :PROPERTIES:
        :ID: 7
        :END:
        *Bold*, =code= and [[file:other.org][the other]], [[https://x.example]].
        - [ ] dig
        | plant | row |
        |-------+-----|
        | leek  | 1   |
        #+BEGIN_SRC python
        # kept
        x = 1
        #+END_SRC
        #+begin_quote
        Slowly.
        #+end_quote
        #+begin_comment
        hidden
        #+end_comment
        """),
    )
    assert (org.title, org.date, org.tags) == ("Garden", "2026-03-04", ("home", "spring"))
    assert org.markdown == dedent("""\
        # Beds

        **Bold**, `code` and [the other](other.org), <https://x.example>.
        - [ ] dig

        | plant | row |
        | --- | --- |
        | leek | 1 |

        ```python
        # kept
        x = 1
        ```

        > Slowly.
        """)


# Long because it shows a whole file.
def test_restructured_text_is_sections_and_code() -> None:
    """Levels go by the marks in their order; roles, targets and comments are left out."""
    rst = read(
        "rst",
        dedent("""\
        =====
        Guide
        =====

        .. a comment
           of two lines

        .. _start:

        Start
        -----

        Call :func:`run <kb.run>` with ``x``, see `the site <https://x.example>`_::

            code here

        .. note:: Mind
           the gap.

        .. code-block:: python
           :linenos:

           # kept
           y = 2

        .. toctree::

           hidden

        ====  =====
        a     b
        ====  =====
        1     two
        ====  =====

        +---+-----+
        | c | d   |
        +===+=====+
        | 3 | one |
        |   | two |
        +---+-----+

        Deeper
        ~~~~~~

        End.
        """),
    )
    assert rst.title == "Guide"
    assert rst.markdown == dedent("""\
        # Guide

        ## Start

        Call run with `x`, see [the site](https://x.example):

        ```
        code here
        ```

        **note: Mind**

        the gap.

        ```python
        # kept
        y = 2
        ```

        | a | b |
        | --- | --- |
        | 1 | two |

        | c | d |
        | --- | --- |
        | 3 | one two |

        ### Deeper

        End.
        """)


# Long because it shows a whole file.
def test_asciidoc_is_sections_lists_and_tables() -> None:
    """Attributes, comments, anchors and includes are left out; keywords are tags."""
    adoc = read(
        "adoc",
        dedent("""\
        = Manual
        Ann Lee <ann@x.example>
        :keywords: boats, keels
        :toc:

        // not said
        [[top]]
        == First

        See https://x.example[the site] and <<top,above>>. image:a.png[A mast]

        [source,ruby]
        ----
        # kept
        puts 1
        ----

        * one
        ** inner
        . first

        .Sizes
        |===
        |boat |length

        |Ada
        |9 m
        |===

        ////
        hidden
        ////
        include::other.adoc[]
        """),
    )
    assert (adoc.title, adoc.tags) == ("Manual", ("boats", "keels"))
    assert adoc.markdown == dedent("""\
        # Manual

        Ann Lee <ann@x.example>

        ## First

        See [the site](https://x.example) and above. A mast

        ```ruby
        # kept
        puts 1
        ```

        - one
          - inner
        1. first

        **Sizes**

        | boat | length |
        | --- | --- |
        | Ada | 9 m |
        """)


def test_latex_is_text_with_its_formulas() -> None:
    """Own commands are expanded, others give way to what they hold; comments are left out."""
    tex = read(
        "tex",
        dedent(r"""
        \documentclass{article}
        \newcommand{\kb}{Knowledge}
        \title{On \kb{} \& \emph{more}}
        \author{J\"org M\"uller}
        \begin{document}
        \maketitle
        \begin{abstract}Short.\end{abstract}
        \section{First \label{s}part}
        It costs 5\% of $x_1 + y$ ~\cite{a,b}. % not said
        \begin{equation}\label{e} E = mc^2 \end{equation}
        \begin{itemize}\item one \item[two] three\end{itemize}
        \begin{verbatim}
        % kept \emph{as is}
        \end{verbatim}
        \begin{tabular}{l|r} a & b \\ \hline \multicolumn{1}{c}{c} & d \\ \end{tabular}
        Stra\ss{}e\footnote{A note.}
        \end{document}
        """),
    )
    assert tex.title == "On Knowledge & more"
    for part in (
        "# On Knowledge & more",
        "Jörg Müller",
        "## Abstract",
        "## First part",
        "It costs 5% of $x_1 + y$",
        "$$\nE = mc^2\n$$",
        "- one",
        "- two: three",
        "```\n% kept \\emph{as is}\n```",
        "| a | b |\n| --- | --- |\n| c | d |",
        "Straße (A note.)",
    ):
        assert part in tex.markdown, part
    assert "not said" not in tex.markdown
    assert "\\" not in tex.markdown.replace("\\emph{as is}", "")


def test_rich_text_in_its_code_page() -> None:
    """Escapes in hex and in Unicode; the title that it states."""
    rtf = read(
        "rtf",
        rb"{\rtf1\ansi\ansicpg1250{\info{\title Zpr\'e1va}}{\fonttbl{\f0 Arial;}}\f0 "
        rb"P\'f8\'edli\'9a \u382?lut\'fd k\'f9\'f2.\par Second.}",
    )
    assert rtf.title == "Zpráva"
    assert rtf.markdown == "Příliš žlutý kůň.\n\nSecond.\n"
    with pytest.raises(Unparsable):
        read("rtf", "plain text")


@pytest.mark.parametrize("ending", READABLE)
@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff\xfe\x00", b"{" * 200_000, b"[[" * 100_000, b"\\begin{" * 50_000]
)
def test_damage_is_refused_or_read(ending: str, data: bytes) -> None:
    """Nothing else is raised, and nothing takes long."""
    with contextlib.suppress(SourceError):
        read(ending, data)


def test_what_makes_too_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound counts what is made, not what is read."""
    monkeypatch.setattr("kb.intake.canonicalize.structured.TEXT_CHARS_MAX", 1_000)
    with pytest.raises(TextTooLong):
        read("json", json.dumps({f"k{n}": {"x": "words " * 10} for n in range(100)}))


def test_a_mailbox_is_a_section_for_each_mail() -> None:
    """A quoted postmark is text; a damaged mail costs no other."""
    box = (
        b"From ann@x.example Mon Nov 22 09:00:00 2026\nFrom: Ann <ann@x.example>\nSubject: Keel\n"
        b"Date: Sun, 22 Nov 2026 09:00:00 +0100\n\nIt is oak.\n\n>From here on it is not.\n\n"
        b"From bo@x.example Mon Nov 22 10:00:00 2026\nnothing of a mail\n\n"
        b"From bo@x.example Mon Nov 22 10:00:00 2026\r\nFrom: bo@x.example\r\n"
        b"Subject: =?utf-8?q?Segel_gr=C3=BCn?=\r\n\r\nYes.\r\n"
    )
    read_box = read("mbox", box)
    assert read_box.markdown == (
        "## Keel\n\nFrom: Ann <ann@x.example>  \nDate: Sun, 22 Nov 2026 09:00:00 +0100\n\n"
        "It is oak.\n\nFrom here on it is not.\n\n## Segel grün\n\nFrom: bo@x.example\n\nYes.\n"
    )
    assert read_box.warnings == ("1 of its mails could not be read",)
    with pytest.raises(Unparsable):
        read("mbox", "Dear Ann")
