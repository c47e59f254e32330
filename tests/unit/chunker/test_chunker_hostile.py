"""Claims about the time that cutting takes."""

import random
import re
from collections.abc import Callable
from math import isqrt

import pytest
from growth import assert_linear

from kb.intake.chunker.chunking import chunk

_SIZE = 60_000
_TOKEN = re.compile(r"\w{1,12}|[^\w\s]")
_NOISE = "".join(random.Random(7).choices("#-*>`~|<! \n\n\f.ab1:=", k=_SIZE))


def _repeat(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


_CASES: dict[str, Callable[[int], str]] = {
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
    "white space": lambda size: "a" + " " * size + "b" + "\n" * size + "c",
    "unclosed fence": lambda size: "```\n" + _repeat("code x\n")(size),
    "nested items": lambda size: "\n".join(" " * min(n, 40) + "- x" for n in range(size // 40)),
    "deep items": lambda size: "\n".join(" " * n + "- x" for n in range(isqrt(2 * size))),
    "long item": lambda size: "- " + _repeat("a b. \n  ```\n  c\n  ```\n  ")(size),
    "nested headings": lambda size: "".join("#" * (n % 6 + 1) + " t\n\n" for n in range(size // 7)),
    "long heading": lambda size: "# " + _repeat("word ")(size) + "\n\nbody",
    "noise": lambda size: _NOISE[:size],
}


def _tokens(markdown: str) -> list[tuple[int, int]]:
    return [found.span() for found in _TOKEN.finditer(markdown)]


@pytest.mark.parametrize("name", list(_CASES))
def test_hostile_text_takes_linear_time(name: str) -> None:
    """Whatever is repeated, twice the text is twice the work, and no sign of it is lost."""
    half, whole = _CASES[name](_SIZE // 2), _CASES[name](_SIZE)
    spans = {text: _tokens(text) for text in (half, whole)}
    assert_linear(lambda text: chunk(text, spans_of=lambda _: [spans[text], []]), half, whole)
    covered = bytearray(len(whole))
    for passage in chunk(whole, spans_of=lambda _: [spans[whole], []]):
        assert passage.text == whole[passage.start : passage.end]
        covered[passage.start : passage.end] = b"\1" * len(passage.text)
    missed = [sign for sign, held in zip(whole, covered, strict=True) if not held]
    assert "".join(missed).strip() == ""
