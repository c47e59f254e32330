"""Claims about the time that cutting takes."""

import random
import re
import time

import pytest

from kb.chunker import chunk

_SIZE = 300_000
_TOKEN = re.compile(r"\w{1,12}|[^\w\s]")
_NOISE = random.Random(7)


def _repeat(unit: str) -> str:
    return (unit * (_SIZE // len(unit) + 1))[:_SIZE]


_CASES = {
    **{
        f"repeat {unit!r}": _repeat(unit)
        for unit in (
            *(
                "x",
                "#",
                "|",
                ">",
                "> ",
                "- ",
                "-",
                ".",
                "漢",
                "。」」」",
                "\f",
                "\t",
                "\u0301",
                "<",
            ),
            *("# h\n", "## h\n\nb\n\n", "#\n", "|\n", ">\n", "- item a\n", "```\n", "~~~\n\f\n"),
            *("<!--\n\f\n", "<!-- ", "<pre>\n", "<div>\n", "<a ", "a|b\n-|-\n", ". ", "a\n=\n"),
            *(
                "---\n",
                "* ",
                "a\n\n\f\n",
                "    x y\n",
                "- a\n  ```\n  c\n  ```\n",
                '.")]',
                "1. a\n",
            ),
        )
    },
    "white space": "a" + " " * _SIZE + "b" + "\n" * _SIZE + "c",
    "unclosed fence": "```\n" + _repeat("code x\n"),
    "nested items": "\n".join(" " * min(n, 40) + "- x" for n in range(_SIZE // 40)),
    "deep items": "\n".join(" " * n + "- x" for n in range(700)),
    "long item": "- " + _repeat("a b. \n  ```\n  c\n  ```\n  "),
    "nested headings": "".join("#" * (n % 6 + 1) + " t\n\n" for n in range(_SIZE // 7)),
    "long heading": "# " + _repeat("word ") + "\n\nbody",
    "noise": "".join(_NOISE.choice("#-*>`~|<! \n\n\f.ab1:=") for _ in range(_SIZE)),
}


@pytest.mark.parametrize("name", list(_CASES))
def test_hostile_text_takes_linear_time(name: str) -> None:
    """Whatever is repeated, a megabyte takes a few seconds at the very most."""
    markdown = _CASES[name]
    spans = [found.span() for found in _TOKEN.finditer(markdown)]
    start = time.process_time()
    passages = chunk(markdown, spans_of=lambda _: [spans, []])
    took = time.process_time() - start
    # What is not linear takes minutes; the rest is room for a busy machine.
    assert took < 4 * max(1.0, len(markdown) / 1e6)
    covered = bytearray(len(markdown))
    for passage in passages:
        assert passage.text == markdown[passage.start : passage.end]
        covered[passage.start : passage.end] = b"\1" * len(passage.text)
    missed = [sign for sign, held in zip(markdown, covered, strict=True) if not held]
    assert "".join(missed).strip() == ""
