"""Definitions by syntax trees: of each language, of broken text, and of texts without end."""

import itertools
from pathlib import Path
from textwrap import dedent

import pytest
from code_snippets import SNIPPETS

from kb.intake.canonicalize import CanonicalizeInput, Parser
from kb.intake.canonicalize.grammar import definitions, read
from kb.intake.canonicalize.grammars import GRAMMARS, installed_mimes
from kb.intake.canonicalize.parsers import BUILT_IN, BY_GRAMMAR, parser_table, table_of
from kb.intake.chunker.definitions import code_blocks
from kb.model.code import CODE_MIMES, code_mime


def parts(language: str, text: str) -> tuple[list[str], list[str]]:
    """The names that a grammar finds, and the titles of the parts."""
    found = definitions(text, code_mime(language))
    names = [text[place.name : place.name_end] for place in found]
    titles = [block.title for block in code_blocks(text, found) if block.kind == "heading"]
    return names, titles


def test_each_language_that_a_grammar_reads_is_tested_here() -> None:
    """The extra brings all of them, and so does the environment of tests."""
    assert SNIPPETS.keys() == GRAMMARS.keys()
    assert set(installed_mimes()) == {code_mime(language) for language in GRAMMARS}


@pytest.mark.parametrize("language", sorted(SNIPPETS))
def test_hard_snippets(language: str) -> None:
    """Names in their order; signatures as titles; each line in exactly one block."""
    text, expected, titled = SNIPPETS[language]
    text = dedent(text).lstrip("\n")
    names, titles = parts(language, text)
    assert names == expected
    for title in titled:
        assert any(found.startswith(title) for found in titles), (title, titles)
    blocks = code_blocks(text, definitions(text, code_mime(language)))
    assert all(one.end < two.start for one, two in itertools.pairwise(blocks))
    kept = "".join(text[block.start : block.end] for block in blocks)
    assert "".join(kept.split()) == "".join(text.split())


def test_what_follows_a_definition_is_not_in_it() -> None:
    """Neither at the top, nor in what it was in; comments go with what is below them."""
    text = (
        "class A:\n"
        "    def b(self):\n"
        "        return 1\n"
        "    size = 3\n"
        "\n"
        "# Of c.\n"
        "@d\n"
        "def c(): return 2\n"
        "run(c)\n"
    )
    found = definitions(text, code_mime("python"))
    blocks = code_blocks(text, found)
    levels = [(block.level, block.title) for block in blocks if block.kind == "heading"]
    assert levels == [
        (1, "class A"),
        (2, "def b(self)"),
        (1, "class A"),
        (1, "def c(): return 2"),
        (1, ""),
    ]
    assert text[blocks[-2].start : blocks[-2].end] == "# Of c.\n@d\ndef c(): return 2"


def test_places_are_characters() -> None:
    """Also behind text that takes several bytes, and lines that are not ASCII."""
    text = "# 茶 ü 🍵\nclass Größe:\n    x = '茶'; y = 'é'\n    def maß(self): return '🍵'\n"
    assert parts("python", text)[0] == ["Größe", "maß"]


@pytest.mark.parametrize("language", sorted(GRAMMARS))
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "{" * 5_000,
        "(" * 5_000 + ")" * 5_000,
        "f(" * 5_000,
        "class A {" * 2_000 + "}" * 2_000,
        "def f():\n" * 3_000,
        "\x00\ufeff\ud800 class A {}\n",
        "a" * (1 << 21),
        "'\"`/*" * 1_000,
    ],
    ids=range(10),
)
def test_texts_without_sense(language: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No recursion; what is found lies in the text, and its lines are kept; or it is given up."""
    monkeypatch.setattr("kb.intake.canonicalize.grammar._CPU_S_MAX", 0.2)
    try:
        found = definitions(text, code_mime(language))
    except ValueError:
        return
    assert all(0 <= place.name <= place.name_end <= len(text) for place in found)
    blocks = code_blocks(text, found)
    assert sum(block.end - block.start for block in blocks) <= len(text)


def test_a_text_of_errors_is_left_to_the_forms_of_lines() -> None:
    """A tree that is wrong over much of the text says nothing; a small error costs nothing."""
    function = "int add(int a)\n{\n    return a;\n}\n"
    assert parts("c", function * 9 + "} ) (\n")[0] == ["add"] * 9
    assert definitions(function + "%% ?? ) ] } :: @@ " * 40, code_mime("c")) == ()


def test_of_two_grammars_the_one_that_understands_more_is_taken() -> None:
    """A header of C++ ends as one of C does."""
    text = "namespace tea {\nclass Pot : Base {\n  int size() const { return 1; }\n};\n}\n"
    assert parts("c", text)[0] == ["tea", "Pot", "size"]
    jsx = "const Page = (x: number) => <div className='a'>{x}</div>;\n"
    assert parts("typescript", jsx)[0] == ["Page"]


def test_a_grammar_of_another_interface_costs_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its import or its query raises leaves the file to the forms of lines."""
    expected = read(b"class A: pass\n", "a.py")
    assert expected.definitions
    for error in (ImportError("no symbol"), ValueError("version 99"), AttributeError("language")):

        def broken(*_: object, error: Exception = error) -> object:
            raise error

        monkeypatch.setattr("kb.intake.canonicalize.grammar.definitions", broken)
        found = read(b"class A: pass\n", "a.py")
        assert (found.markdown, found.mime, found.definitions) == (
            expected.markdown,
            expected.mime,
            (),
        )


def test_without_grammars_code_is_read_here_and_by_its_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fingerprint tells both apart, for the languages of grammars alone."""
    by_grammar = parser_table().by_mime
    assert by_grammar[code_mime("java")] == BY_GRAMMAR
    assert by_grammar[code_mime("lua")] == BUILT_IN["code"]
    monkeypatch.setattr("kb.intake.canonicalize.grammars.importlib.util.find_spec", lambda _: None)
    assert installed_mimes() == []
    without = table_of(()).by_mime
    assert without[code_mime("java")] == BUILT_IN["code"]
    assert not without[code_mime("java")].is_risky
    assert BY_GRAMMAR.is_risky
    changed = {
        mime for mime in without if without[mime].fingerprint != by_grammar[mime].fingerprint
    }
    assert changed == {code_mime(language) for language in GRAMMARS}
    assert definitions("class A {}\n", code_mime("java")) == ()


def test_the_child_reads_it_and_a_long_text_is_left_to_its_form() -> None:
    """What is over a mebibyte is no matter for a grammar; all of its text is there."""
    data = b"def add(a):\n    return a\n" * 50_000
    long = CanonicalizeInput(data=data, mime=CODE_MIMES["py"], name="a.py")
    small = CanonicalizeInput(data=data[:250], mime=CODE_MIMES["py"], name="a.py")
    with Parser() as parser:
        found = parser.parse(long)
        assert (found.definitions, len(found.markdown)) == ((), len(data))
        assert len(parser.parse(small).definitions) == 10
        assert parser.child_pid is not None


def test_a_text_that_takes_minutes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of quotation marks is left to the forms of lines after some seconds."""
    monkeypatch.setattr("kb.intake.canonicalize.grammar._CPU_S_MAX", 0.02)
    data = b"'\"`/*\n" * 10_000
    found = read(data, "a.c")
    assert (found.markdown, found.definitions) == (data.decode(), ())


OWN = Path(__file__).resolve().parents[3] / "kb"


def test_own_source_is_read_alike_by_both() -> None:
    """In kb's own modules the forms of lines find what the grammar does, and little besides."""
    both = either = 0
    for path in sorted(OWN.rglob("*.py"))[::7]:
        text = path.read_text("utf-8")
        found = definitions(text, CODE_MIMES["py"])
        by_form, by_grammar = (
            {block.title for block in code_blocks(text, places) if block.kind == "heading"}
            for places in ((), found)
        )
        both += len(by_form & by_grammar)
        either += len(by_form | by_grammar)
    assert both / either > 0.9
