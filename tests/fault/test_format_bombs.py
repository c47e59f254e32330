"""What do files do that would be huge, endless or deep if somebody believed them?"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from format_bombs import BOMBS, LONG

from kb.errors import SourceError
from kb.intake.canonicalize import CanonicalizeInput, Parser, detect_mime
from kb.intake.canonicalize.parser import MEMORY_BYTES_MAX
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, parser_table

NEXT = CanonicalizeInput(
    data=b"<html><title>T</title><body><p>Some words to read.</p></body></html>",
    mime="text/html",
    name="next.html",
)
QUICK = sorted(BOMBS.keys() - LONG)


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    with Parser() as made:
        yield made


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(LONG))]
)
def test_each_ends_within_the_bounds(name: str, parser: Parser) -> None:
    """It is read or refused by its name, in bounded memory, and the next file is read."""
    data = BOMBS[name]()
    mime = detect_mime(data, name)
    assert mime in parser_table().by_mime
    refusal, text = "", ""
    try:
        text = parser.parse(CanonicalizeInput(data=data, mime=mime, name=name)).markdown
    except SourceError as error:
        refusal = str(error)
    assert text or refusal.startswith(f"{name}: ")
    assert len(text) <= TEXT_CHARS_MAX
    assert "root:" not in text
    if sys.platform == "linux" and parser.child_pid is not None:
        status = Path(f"/proc/{parser.child_pid}/status").read_text()
        peak = re.search(r"VmHWM:\s*(\d+) kB", status)
        assert peak is not None
        assert int(peak[1]) * 1024 < MEMORY_BYTES_MAX
    assert parser.parse(NEXT).title == "T"
