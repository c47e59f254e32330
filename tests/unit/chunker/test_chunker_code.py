"""Source code is cut at its definitions, whatever its language."""

import itertools
import re
from textwrap import dedent

import pytest

from kb.intake.chunker.chunking import chunk_many
from kb.intake.chunker.definitions import code_blocks


def spans_of(texts: list[str]) -> list[list[tuple[int, int]]]:
    return [[match.span() for match in re.finditer(r"\w+|[^\w\s]", text)] for text in texts]


SAMPLES = {
    "py": (
        """
        import os

        # Where it begins.
        @cached
        def parse_config(path):
            '''Read it.'''
            # heading?
            return os.read(path)

        class Reader(Base):
            SIZE = 3

            async def read_all(self) -> list[str]:
                def inner(): return 1
                return [inner()]

        if __name__ == "__main__":
            parse_config("x")
        """,
        {
            "return os.read": ("def parse_config(path)",),
            "# Where it begins": ("def parse_config(path)",),
            "SIZE = 3": ("class Reader(Base)",),
            "return [inner()]": (
                "class Reader(Base)",
                "async def read_all(self) -> list[str]",
            ),
            "__main__": (),
        },
    ),
    "ts": (
        """
        import x from "y";

        /** Opens
         *  the door. */
        export async function openDoor(key: string): Promise<void> {
          if (key) {
            call(key);
          }
        }

        export default class Door {
          private width = 3;

          open(wide: boolean): void {
            this.width = wide ? 4 : 3;
          }
        }

        const close = (door: Door) => {
          door.shut();
        };
        """,
        {
            "the door": ("export async function openDoor(key: string): Promise<void>",),
            "call(key)": ("export async function openDoor(key: string): Promise<void>",),
            "this.width": ("export default class Door", "open(wide: boolean): void"),
            "door.shut": ("const close = (door: Door) =>",),
        },
    ),
    "go": (
        """
        package main

        // Serve answers.
        func (s *Server) Serve(port int) error {
        \tif port == 0 {
        \t\treturn nil
        \t}
        \treturn s.listen(port)
        }

        type Server struct {
        \tname string
        }
        """,
        {
            "Serve answers": ("func (s *Server) Serve(port int) error",),
            "s.listen": ("func (s *Server) Serve(port int) error",),
            "name string": ("type Server struct",),
        },
    ),
    "c": (
        """
        #include <stdio.h>
        #define N 3

        static int
        helper(void);

        /* Adds. */
        int add(int a, int b)
        {
            for (int i = 0; i < N; i++) {
                a += b;
            }
            return a;
        }
        """,
        {"a += b": ("int add(int a, int b)",), "Adds": ("int add(int a, int b)",), "N 3": ()},
    ),
    "rs": (
        """
        /// A point.
        #[derive(Debug)]
        pub struct Point { x: i32 }

        impl Point {
            pub fn new(x: i32) -> Self {
                Self { x }
            }
        }
        """,
        {
            "A point": ("pub struct Point { x: i32 }",),
            "Self { x }": ("impl Point", "pub fn new(x: i32) -> Self"),
        },
    ),
    "rb": (
        """
        module Boats
          class Keel
            # Its weight.
            def weight
              @oak * 2
            end
          end
        end
        """,
        {"@oak": ("module Boats", "class Keel", "def weight")},
    ),
    "sh": (
        """
        #!/bin/sh
        # A comment is no heading.

        build() {
          make all
        }
        build
        """,
        {"make all": ("build()",), "A comment": ()},
    ),
    "sql": (
        """
        -- All boats.
        CREATE TABLE boats (
          id integer
        );
        """,
        {"id integer": ("CREATE TABLE boats",)},
    ),
}


@pytest.mark.parametrize("language", SAMPLES)
def test_every_line_knows_what_it_is_in(language: str) -> None:
    """The path of the smallest chunks names the definitions around each line."""
    text, wanted = dedent(SAMPLES[language][0]).lstrip("\n"), SAMPLES[language][1]
    paths = {}
    blocks = code_blocks(text)
    for said in wanted:
        at = text.index(said)
        above: list[tuple[int, str]] = []
        for block in blocks:
            if block.start > at:
                break
            if block.kind == "heading":
                above = [one for one in above if one[0] < block.level]
                above += [(block.level, block.title)] if block.title else []
        paths[said] = tuple(title for _, title in above)
    assert paths == wanted


@pytest.mark.parametrize("language", SAMPLES)
def test_every_line_is_in_one_block(language: str) -> None:
    """In order, and none is lost."""
    text = dedent(SAMPLES[language][0])
    blocks = code_blocks(text)
    assert [b.start for b in blocks] == sorted(b.start for b in blocks)
    inside = "".join(text[block.start : block.end] for block in blocks)
    assert "".join(inside.split()) == "".join(text.split())
    assert all(a.end < b.start for a, b in itertools.pairwise(blocks))


def test_a_function_that_fits_is_one_chunk() -> None:
    """With its comment; a comment's # is no heading, and offsets are those of the file."""
    functions = [f"# What {n} is for.\ndef f{n}(x):\n    return x + {n}  # y\n" for n in range(40)]
    text = "\n".join(functions)
    chunks = chunk_many(
        [text], ["f.py"], spans_of=spans_of, tokens_max=48, overlap_tokens=8,
        blocks_of=[code_blocks],
    )[0]  # fmt: skip
    assert len(chunks) > 10
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.startswith("# What")
        assert chunk.text.rstrip().endswith("# y")


def test_what_is_no_code_is_cut_too() -> None:
    """Long lines and deep nesting cost no more than their length."""
    for text in ("x" * 200_000, "(" * 50_000, "{\n" * 20_000, "a b " * 40_000, "def " * 30_000):
        assert code_blocks(text)


def _titles(text: str) -> list[str]:
    return [block.title for block in code_blocks(text) if block.kind == "heading"]


def test_methods_after_one_with_a_function_in_it() -> None:
    """A nested definition does not hide the members behind it."""
    text = (
        "class Path {\n"
        "    walk(entry) {\n"
        "        const step = (one) => {\n"
        "            return one\n"
        "        }\n"
        "        return step(entry)\n"
        "    }\n"
        "\n"
        "    stream(entry = this.cwd, options = {}) {\n"
        "        return entry\n"
        "    }\n"
        "\n"
        "    size() { return this.entries }\n"
        "}\n"
    )
    titles = _titles(text)
    assert "stream(entry = this.cwd, options = {})" in titles
    assert any(title.startswith("size()") for title in titles)


def test_signatures_over_several_lines() -> None:
    """The first line of one may end with a comma; a call that does is none."""
    assert _titles("def ask(one, two,\n        three):\n    call(one,\n         two)\n") == [
        "def ask(one, two,"
    ]
    assert _titles("typedef struct node {\n    int at;\n} node;\n")[0] == "typedef struct node"
    assert _titles("bool\noperator==(const node& other) const\n{\n    return true;\n}\n") == [
        "operator==(const node& other) const"
    ]
