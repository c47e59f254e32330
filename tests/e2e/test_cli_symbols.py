"""A name that is copied from code leads to the place that defines it."""

from pathlib import Path

import pytest
from commands import Home

FILES = {
    "front.py": "def _with_block(text, old):\n    return text.replace(old, '')\n\n\ndef read(x):\n"
    "    return _with_block(x, 'y')\n",
    "blocks.py": "from front import _with_block\n\n\ndef scan(self):\n    if block:\n"
    "        return _with_block(block, _with_block(block, block))\n    return with_block\n",
    "report.py": "class Sheet:\n    def with_blocks(self):\n        return 'blocks of a report'\n",
    "sums.go": "func (s *Sheet) AddRow(row Row) {\n\ts.rows = append(s.rows, row)\n}\n",
    "use.go": "func fill(s *Sheet) {\n\ts.AddRow(a)\n\ts.AddRow(b)\n\ts.AddRow(c)\n}\n",
    "page.js": "export const parseQuery = (text) => {\n  return text.split('&');\n};\n",
    "main.js": "parseQuery(a);\nparseQuery(b); // parseQuery, parse the query\n",
    "_report.md": "# Reports\n\nThe report of the year, a report of reports.\n",
    "yearly.py": "def _report(year):\n    return year\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a small source tree, which the tests only read."""
    folder = tmp_path_factory.mktemp("symbols")
    tree = folder / "tree"
    tree.mkdir()
    for name, text in FILES.items():
        (tree / name).write_text(text)
    home = Home(folder / "home")
    assert home.run("add", "-r", tree).code == 0
    return home


@pytest.mark.parametrize(
    ("symbol", "file"),
    [
        ("_with_block", "front.py"),
        ("with_blocks", "report.py"),
        ("AddRow", "sums.go"),
        ("parseQuery()", "page.js"),
        ("_report", "yearly.py"),
    ],
)
@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_a_symbol_leads_to_its_definition(home: Home, symbol: str, file: str, mode: str) -> None:
    """Before files that use it more often, and before others whose words have the same stems."""
    hits = home.run("search", symbol, "--mode", mode, "--json").json["hits"]
    assert Path(hits[0]["source"]).name == file
