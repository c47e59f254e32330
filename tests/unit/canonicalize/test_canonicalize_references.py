"""What do libraries of BibTeX and RIS say, and which of their entries become docs?"""

import pytest
from growth import assert_linear

from kb.intake.canonicalize import CanonicalizeInput, bibtex, canonicalize, detect_mime
from kb.model.text import Canonical

FULL = r"""
@string{jml = "Journal of {M}achine Learning"}
@preamble{ "\newcommand{\noop}[1]{}" }
@Article{lovelace:1843/a,
  author   = {M{\"u}ller, J{\'o}zef and {Barnes and Noble} and van der Berg, Ada and others},
  title    = "The {DNA} of \emph{{\'E}tudes}: a ``study'' in CO$_2$",
  journal  = jml # { B},
  year     = 1843, month = oct,
  pages    = {12--34},
  doi      = {10.1000/A\_b},
  url      = {https://x.org/~ada/a--b?c=1\&d},
  keywords = {ibex, river},
  abstract = {First   part of
    it.

    Second {nested {part}} $\frac{a}{b}$ &amp; <i>so</i>.},
  file     = {Full Text:files/1/a.pdf:application/pdf},
}
"""


def read(text: str | bytes, name: str = "library.bib") -> Canonical:
    """The library, or one of its records, as kb reads it."""
    data = text.encode() if isinstance(text, str) else text
    return canonicalize(CanonicalizeInput(data=data, mime=detect_mime(data, name), name=name))


def records(text: str | bytes, name: str = "library.bib") -> dict[str, Canonical]:
    """The records of a library by their keys, each read by itself."""
    return {file.key: read(file.data, file.name) for file in read(text, name).attachments}


def test_an_entry_of_bibtex_is_words() -> None:
    """Accents, braces, quotes and formulas of LaTeX are what people read."""
    doc = read(FULL)
    assert doc.markdown == (
        "# The DNA of Études: a “study” in CO2\n\n"
        "Józef Müller, Barnes and Noble, Ada van der Berg, et al.\n\n"
        "- type: article\n- citation key: lovelace:1843/a\n"
        "- journal: Journal of Machine Learning B\n- year: 1843\n- month: oct\n"
        "- pages: 12–34\n- doi: 10.1000/A_b\n- url: https://x.org/~ada/a--b?c=1&d\n"
        "- keywords: ibex, river\n\n"
        "First part of it.\n\nSecond nested part $\\frac{a}{b}$ & so.\n"
    )
    assert (doc.title, doc.date, doc.tags, doc.aliases) == (
        "The DNA of Études: a “study” in CO2",
        "1843-10",
        ("ibex", "river"),
        ("lovelace:1843/a",),
    )
    assert (doc.attachments, doc.warnings, doc.mime) == ((), (), "text/x-bibtex")


def test_several_entries_are_records_by_their_keys() -> None:
    """Each says all that it says in the library, what `@string` defines included."""
    found = records(FULL + "@misc{b, title = {River}}")
    assert found["lovelace:1843/a"] == read(FULL)
    assert found["b"].title == "River"
    whole = read(FULL + "@misc{b, title = {River}}")
    assert whole.title == "library"
    assert whole.rest == ""
    assert "## River" in whole.markdown


def test_an_entry_inherits_what_the_one_it_refers_to_says() -> None:
    """A chapter is in the book."""
    book = "@book{whole, title = {Rivers}, publisher = {Ibex Press}, year = 2001}"
    found = records(f"@inbook{{part, title = {{Ice}}, crossref = {{whole}}}}\n{book}")
    assert found["part"].date == "2001"
    for said in ("booktitle: Rivers", "publisher: Ibex Press"):
        assert said in found["part"].markdown


@pytest.mark.parametrize(
    "damaged",
    [
        "@article{bad, title = {No end,\n year = 2001\n}",
        "@article{bad, title = , year = 2001}",
        '@article{bad, title = "No end, year = 2001}',
        "@article{bad, title {Ice}}",
    ],
)
def test_a_damaged_entry_costs_only_itself_and_is_named(damaged: str) -> None:
    """Its text stays that of the file."""
    text = f"@misc{{a, title = {{A}}}}\n\n{damaged}\n\n@misc{{b, title = {{B}}}}\n"
    doc = read(text)
    assert [file.key for file in doc.attachments] == ["a", "b"]
    assert doc.warnings == ("entry bad at line 3 is damaged; it stays text of the file",)
    assert doc.rest == f"```\n{damaged}\n```"


def test_many_damaged_entries_are_counted() -> None:
    """The first ten are named."""
    text = "".join(f"@misc{{bad{n}, title = }}\n" for n in range(25))
    warnings = read(f"{text}@misc{{a, title = {{A}}}}").warnings
    assert warnings[9].startswith("entry bad9 at line 10 ")
    assert warnings[10:] == ("15 more entries are damaged",)


def test_what_is_no_entry_is_none() -> None:
    """Comments are left out; what people write between entries stays text of the file."""
    text = (
        "% Encoding: UTF-8\nMine, ask me@x.org{1}.\n@comment{@misc{no, title = {No}}}\n"
        "@COMMENT{jabref-meta: grouping:\n0 All;}\n"
        "@misc(a, title = {A (one)})@misc{b,title={B},},\n"
        "% @misc{old, title = {Old}}\n"
    )
    doc = read(text)
    assert [file.key for file in doc.attachments] == ["a", "b"]
    assert doc.rest == "Mine, ask me@x.org{1}.\n\n% @misc{old, title = {Old}}"


def test_braces_behind_a_backslash_may_stand_alone() -> None:
    """As programs write them that do not count them."""
    text = "@misc{a, title = {Left \\{ alone}}\n@misc{b, title = {B}}"
    assert {key: doc.title for key, doc in records(text).items()} == {
        "a": "Left { alone",
        "b": "B",
    }


def test_entries_without_a_key_and_with_one_key_have_keys_that_stay() -> None:
    """Of two with one key the second is known by its work; the same one twice is one."""
    entries = [
        "@misc{k, title = {A}, doi = {10.1000/A}}",
        "@misc{k, title = {B}, doi = {https://doi.org/10.1000/B}}",
        "@misc{k, title = {A}, doi = {10.1000/A}}",
        "@misc{, title = {C}, year = 1999}",
        "@misc{title = {D}, year = 1999}",
        "@misc{" + "long" * 40 + ", title = {E}}",
    ]
    found = {doc.title: key for key, doc in records("\n".join(entries)).items()}
    assert list(found) == ["A", "B", "C", "D", "E"]
    assert (found["A"], found["B"]) == ("k", "k 10.1000/b")
    plain = records("\n".join(entries))[found["A"]].markdown
    assert plain == "# A\n\n- type: misc\n- citation key: k\n- doi: 10.1000/A\n"
    more = [entry.replace("1999}", "1999, note = {New}}") for entry in entries[:1:-1]]
    later = {doc.title: key for key, doc in records("\n".join((*entries[:2], *more))).items()}
    assert later == found


@pytest.mark.parametrize(
    ("fields", "date"),
    [
        ("date = {2020-05-03/2020-06}", "2020-05-03"),
        ("date = {2020-05}, year = 1999", "2020-05"),
        ("year = {2020}, month = {5}, day = 7", "2020-05-07"),
        ("year = {2020}, month = {September}", "2020-09"),
        ("year = {2020}, month = {13}", "2020"),
        ("year = {[c. 1923]}", "1923"),
        ("year = {2020a}", "2020"),
        ("year = {in press}", None),
    ],
)
def test_the_date_is_that_of_the_work(fields: str, date: str | None) -> None:
    """As exactly as it is stated."""
    assert read(f"@misc{{a, title = {{A}}, {fields}}}").date == date


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "cp1252"])
def test_a_library_may_be_in_any_encoding(codec: str) -> None:
    """Its records are UTF-8."""
    entries = [f"@misc{{k{n}, title = {{Über die Öfen, ‘{n}’}}}}" for n in range(20)]
    found = records("\r\n".join(entries).encode(codec))
    assert found["k7"].title == "Über die Öfen, ‘7’"


def test_a_file_without_an_entry_is_plain_text() -> None:
    """Whatever its name says."""
    assert read("@string{a = {b}}").markdown == "@string{a = {b}}\n"
    assert read("Some words\n", "notes.ris").markdown == "Some words\n"


@pytest.mark.parametrize(
    "text",
    [
        "@string{a = {" + "x" * 9_000 + "}}\n" + "@misc{b, title = a" + " # a" * 9_000 + "}",
        "@string{p = {" + "x" * 9_000 + "}}\n@string{p = p # p # p}\n" * 40 + "@misc{b, title = p}",
    ],
)
def test_what_strings_make_is_bounded(text: str) -> None:
    """A library never grows without end."""
    assert len(read(text).markdown) < 4 << 20


@pytest.mark.parametrize(
    "entry",
    [
        "@misc{a, title = {x}}",
        "@misc{a, title = {x}",
        "@comment{x",
        "@misc{a, title = {x}\n",
        "@a@",
    ],
)
def test_a_library_is_read_in_linear_time(entry: str) -> None:
    """Whatever is wrong with all its entries."""
    data = (entry * 10_000).encode()
    assert_linear(lambda data: bibtex.read(data, "a.bib"), data, data * 2)


RIS = """\
TY  - JOUR
TI  - The ice of <i>rivers</i>
AU  - Lovelace, Ada
AU  - Müller, Józef, Jr.
PY  - 2020/05/03/
T2  - Journal of Ice
JO  - Journal of Ice
VL  - 4
SP  - 12
EP  - 34
DO  - https://doi.org/10.1000/ABC
KW  - ibex
KW  - river ice; snow
AB  - First line
US - based line.
ID  - 7
ER  -

"""


def test_a_reference_of_ris_is_words() -> None:
    """With its lines as fields, and what is on several lines as one."""
    doc = read(RIS, "a.ris")
    assert doc.markdown == (
        "# The ice of rivers\n\nAda Lovelace, Józef Müller, Jr.\n\n"
        "- type: JOUR\n- year: 2020/05/03/\n- in: Journal of Ice\n- volume: 4\n"
        "- first page: 12\n- last page: 34\n- doi: https://doi.org/10.1000/ABC\n- id: 7\n"
        "- keywords: ibex, river ice, snow\n\nFirst line US - based line.\n"
    )
    assert (doc.title, doc.date) == ("The ice of rivers", "2020-05-03")
    assert doc.tags == ("ibex", "river ice", "snow")


def test_references_of_ris_are_records_by_their_doi_or_id() -> None:
    """Without either by what they are; the end of one may be missing."""
    other = "TY  - BOOK\nT1  - Snow\nID  - 8\n"
    third = "TY  - BOOK\nBT  - Hail\nY1  - 1999\nED  - Berg, Ada"
    found = records((RIS + other + third).replace("\n", "\r\n"), "a.ris")
    assert list(found)[:2] == ["10.1000/abc", "8"]
    assert [doc.title for doc in found.values()] == ["The ice of rivers", "Snow", "Hail"]
    assert found["10.1000/abc"] == read(RIS, "a.ris")
    again = records(RIS + third + "\nN1  - More\nER  - \n", "a.ris")
    assert set(again) == {"10.1000/abc", list(found)[2]}


def test_tags_of_ris_may_have_one_space() -> None:
    """Where no line has two."""
    found = records("TY - BOOK\nTI - A\nER -\nTY - BOOK\nTI - B\nER -\n", "a.ris")
    assert [doc.title for doc in found.values()] == ["A", "B"]
