"""Code when its grammars come and go: it is read again in the background, and nothing else is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kb
from kb.intake.canonicalize import grammars, parsers
from kb.operations.work import Workers

FIELDS = "".join(f"    private int leaf_{n} = {n} * water + {n};\n" for n in range(60))
JAVA = f"""\
class Pot {{
{FIELDS}
    @Pours({{
        "cups"
    }})
    Cup pour_out(
            int cups)
            throws Spilled
    {{
        int leaf = 1;
{FIELDS.replace("private ", "    ")}
        return new Cup(cups);
    }}
}}
"""
NOTE = "# Tea\n\nA pot of tea.\n"
FORMS = {"class Pot"}
GRAMMAR = {"class Pot", "Cup pour_out"}


@pytest.fixture
def parser_cache() -> Iterator[None]:
    """Whatever parsers a test has had, the next one has those that are installed."""
    yield
    parsers.parser_table.cache_clear()


def headings(home: kb.Home) -> set[str]:
    """The headings of all passages of code."""
    passages = home.passages(kinds=("file",))
    return {part for one in passages for part in one.heading if "Tea" not in part}


@pytest.mark.usefixtures("parser_cache")
def test_code_is_read_again_when_grammars_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches answer meanwhile; a note keeps its version, and a symbol leads to its code."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Pot.java").write_text(JAVA)
    (folder / "note.md").write_text(NOTE)
    versions = []
    for is_there, expected in ((False, FORMS), (True, GRAMMAR), (False, FORMS)):
        with monkeypatch.context() as patch:
            if not is_there:
                patch.setattr(grammars, "installed_mimes", list)
                patch.setattr(parsers, "installed_mimes", list)
            parsers.parser_table.cache_clear()
            with kb.open(tmp_path / "home", settings={"embed.kind": "hashing"}) as home:
                if not versions:
                    home.add(folder)
                with Workers(home._homes.app(create=True), reads_files=True) as workers:
                    workers.drain()
                assert headings(home) == expected
                hits = home.search("pour_out", mode="lexical").hits
                assert {Path(hit.source).name for hit in hits} == {"Pot.java"}
                assert hits[0].heading[-1] in expected
                versions.append({Path(doc.source).name: doc.version for doc in home.docs()})
    assert versions == [
        {"Pot.java": 1, "note.md": 1},
        {"Pot.java": 2, "note.md": 1},
        {"Pot.java": 3, "note.md": 1},
    ]
