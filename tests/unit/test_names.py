"""Names: the glossary is true, words that were given up stay away, and one name has one meaning."""

import ast
import inspect
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import kb
from kb.operations.table import listing
from kb.serve.http_openapi import described
from kb.serve.http_server import all_routes

ROOT: Final = Path(__file__).resolve().parents[2]
GLOSSARY: Final = ROOT / "docs/glossary.md"

GIVEN_UP: Final = (
    "birth",
    "births",
    "crew",
    "crowd",
    "desk",
    "door",
    "having",
    "heard",
    "landing",
    "mending",
    "mends",
    "meaning",
    "mortals",
    "remembered",
    "shelves",
    "spread",
    "stranger",
    "truth",
    "understood",
    "wish",
)
"""Words that no class, function, module or argument of kb/ and cli/ may have in its name."""

UNIQUE_MODULES: Final = frozenset(("wire.py",))
"""Module names that say too little to be used twice."""
MODULES_PER_NAME_MAX: Final = 2
SHARED_MODULES: Final = frozenset(
    (
        "docs.py",
        "files.py",
        "guide.py",
        "keys.py",
        "load.py",
        "notebook.py",
        "pack.py",
        "records.py",
        "report.py",
    )
)
"""Module names of kb/ that too many still share; one that is rarer now has to leave this list."""


@cache
def trees(folder: str) -> tuple[tuple[Path, ast.Module], ...]:
    """Every module of a folder, parsed."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return tuple((path, ast.parse(path.read_text("utf-8"))) for path in paths)


def identifiers(path: Path, tree: ast.Module) -> Iterator[str]:
    """The names of a module and of its classes, functions and arguments."""
    yield path.parent.name if path.stem == "__init__" else path.stem
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


@cache
def words_of(name: str) -> set[str]:
    """The words of an identifier, in lower case: `_HomeCrew` and `home_crew` have two."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def terms() -> list[str]:
    """The first column of the glossary's tables."""
    rows = [
        line.split("|") for line in GLOSSARY.read_text("utf-8").splitlines() if line[:2] == "| "
    ]
    return [row[1].strip() for row in rows if row[1].strip() != "Term"]


@cache
def prose() -> str:
    """All of kb/ and the documents but the glossary, in lower case."""
    documents = [path for path in (ROOT / "docs").rglob("*.md") if path != GLOSSARY]
    files = [*sorted((ROOT / "kb").rglob("*.py")), *documents]
    return "\n".join(file.read_text("utf-8") for file in files).lower()


def test_the_glossary_has_each_term_once() -> None:
    """Whoever looks one up finds one row."""
    counts = Counter(term.casefold() for term in terms())
    assert len(counts) >= 40
    assert [term for term, count in counts.items() if count > 1] == []


def test_a_term_of_the_glossary_is_used() -> None:
    """In kb/ or in another document; part of an identifier counts."""
    text = prose()
    unused = [
        term
        for term in terms()
        if not re.search(rf"(?<![a-z]){re.escape(term.lower())}(?![a-z])", text)
    ]
    assert unused == []


def test_what_the_glossary_names_is_there() -> None:
    """Files and folders in backticks exist."""
    named = re.findall(r"`((?:kb|docs|tests)/[^`]+)`", GLOSSARY.read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("_HomeCrew", {"home", "crew"}),
        ("open_door", {"open", "door"}),
        ("HTTPDesk", {"http", "desk"}),
    ],
)
def test_words_of_a_name(name: str, words: set[str]) -> None:
    """However it is written."""
    assert words_of(name) == words


def test_words_that_were_given_up_stay_away() -> None:
    """No identifier of kb/ or cli/ has one of them."""
    offences = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("kb", "cli")
        for path, tree in trees(folder)
        for name in identifiers(path, tree)
        if not words_of(name).isdisjoint(GIVEN_UP)
    ]
    assert offences == []


def test_a_class_name_has_one_meaning() -> None:
    """No two classes of kb/ and cli/ have one name."""
    names = Counter(
        node.name
        for folder in ("kb", "cli")
        for _, tree in trees(folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_module_name_is_not_used_too_often() -> None:
    """Two rooms may share a name, but for those on the list, which shrinks."""
    names = Counter(path.name for path, _ in trees("kb") if path.name != "__init__.py")
    shared = {
        name
        for name, count in names.items()
        if count > (1 if name in UNIQUE_MODULES else MODULES_PER_NAME_MAX)
    }
    assert shared == SHARED_MODULES


def descriptions(schema: object) -> Iterator[str]:
    """The descriptions in a JSON document, at any depth."""
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            yield schema["description"]
        for value in schema.values():
            yield from descriptions(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from descriptions(value)


def remarks(path: Path, tree: ast.Module) -> Iterator[str]:
    """The docstrings and comments of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield inspect.cleandoc(str(node.value.value))
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_code_says_chunk_for_what_people_read_as_passage() -> None:
    """Docstrings and comments of kb/ do, but for docstrings that are shown as descriptions."""
    shown = {*descriptions(described(all_routes())), *descriptions(json.loads(listing()))}
    # What programmers read in `help(kb.Home)` and in the reference.
    public = (kb.open, *(member for name, member in vars(kb.Home).items() if name[0] != "_"))
    shown |= {inspect.getdoc(member) or "" for member in public}
    offences = [
        f"{path.relative_to(ROOT)}: {remark[:60]}"
        for path, tree in trees("kb")
        for remark in remarks(path, tree)
        if "passage" in remark.lower()
        and re.search(r"(?i)\bpassages?\b(?!/)", remark)
        and remark not in shown
    ]
    assert offences == []


def test_people_read_passage_for_chunk() -> None:
    """No description of a route or a tool says chunk; names of fields and jobs may."""
    shown = {*descriptions(described(all_routes())), *descriptions(json.loads(listing()))}
    said = [text for text in shown if re.search(r"(?i)(?<![`_])\bchunks?\b(?![`_])", text)]
    assert said == []
