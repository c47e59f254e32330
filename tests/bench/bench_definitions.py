"""How many of the definitions that ctags finds are headings of kb's passages, by language?

    python tests/bench/bench_definitions.py FOLDER... [--files 300] [--missed 5]

Takes files of each language from the folders, drawn by a fixed seed, and compares the lines of
functions, methods, classes and other types that universal-ctags names with the first lines of kb's
sections: as told by the form of lines, and, where a grammar is installed (kb-search[code]), by it.
Declarations without a body are not asked for, nor are lines over 500 characters. Prints of each
reader the recall; how many of its headings hold nothing that ctags names; its processor time for a
megabyte; and for grammars, of how many files they left the definitions to the forms of lines. Then
some definitions that the better one misses.
"""

import argparse
import json
import os
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from random import Random

from kb.intake.canonicalize.grammar import definitions
from kb.intake.canonicalize.grammars import grammars_for
from kb.intake.chunker.blocks import Block
from kb.intake.chunker.definitions import code_blocks
from kb.model.code import CODE_MIMES
from kb.model.definition import Definition

_LANGUAGES = {
    "Python": ("py", "class function member"),
    "JavaScript": ("js mjs cjs jsx", "class function method generator getter setter"),
    "TypeScript": ("ts tsx", "class function method interface enum generator namespace"),
    "Java": ("java", "class interface enum method annotation"),
    "C": ("c h", "function struct union enum"),
    "C++": ("cc cpp cxx hpp hh", "function struct class union enum namespace"),
    "Go": ("go", "func struct interface"),
    "Rust": ("rs", "function struct enum interface method implementation macro module"),
    "Ruby": ("rb", "class module method singletonMethod"),
    "PHP": ("php", "class interface trait function"),
    "C#": ("cs", "class struct interface enum method"),
    "Sh": ("sh bash", "function"),
    "Perl": ("pl pm", "subroutine"),
    "Lua": ("lua", "function"),
}
_LINE_CHARS_MAX = 500
_BYTES_MAX = 1 << 20


def files_of(folders: list[Path], endings: set[str]) -> list[Path]:
    """Every regular file with one of these endings; minified ones are left out."""
    found = set()
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                path = Path(root, name)
                fits = name.rpartition(".")[2] in endings and ".min." not in name
                if fits and path.is_file() and 0 < path.stat().st_size < _BYTES_MAX:
                    found.add(path.resolve())
    return sorted(found)


def tags_of(language: str, kinds: set[str], files: list[Path]) -> dict[Path, dict[int, str]]:
    """By file: the lines of definitions, with what is defined there."""
    command = ("ctags", f"--language-force={language}", "--output-format=json", "--fields=+nKS")
    done = subprocess.run(
        [*command, "-L", "-", "-f", "-"],
        input="\n".join(map(str, files)),
        capture_output=True,
        text=True,
        check=True,
    )
    tags: dict[Path, dict[int, str]] = defaultdict(dict)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        name = tag["name"]
        if tag.get("kind") in kinds and not name.startswith(("__anon", "Anonymous")):
            tags[Path(tag["path"])][tag["line"]] = f"{tag['kind']} {name}"
    return tags


class Reader:
    """What one way to read has found so far, and what it has missed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = self.heads = self.strange = self.left = self.read = 0
        self.spent_s = 0.0
        self.missed: list[str] = []

    def compare(self, path: Path, text: str, tags: dict[int, str]) -> None:
        """Read a file, and look for each of its tags."""
        self.read += len(text)
        began_s = time.process_time()
        found: tuple[Definition, ...] = ()
        if self.name == "grammar":
            found = definitions(text, CODE_MIMES[path.suffix[1:]])
            self.left += not found
        blocks = code_blocks(text, found)
        self.spent_s += time.process_time() - began_s
        rows_of = [
            range(text.count("\n", 0, block.start) + 1, text.count("\n", 0, block.end) + 2)
            for block in blocks
            if block.kind == "heading"
        ]
        headings = {row for rows in rows_of for row in rows}
        lines = text.split("\n")
        for row, what in sorted(tags.items()):
            written = lines[row - 1] if row <= len(lines) else ""
            is_declared = written.rstrip().endswith(";") and "{" not in written
            if len(written) > _LINE_CHARS_MAX or is_declared:
                continue
            self.asked += 1
            if row not in headings:
                self.missed.append(f"    {path}:{row}: {what}: {written.strip()[:100]}")
        # A line after a definition begins a section, too: it has the title of what it is in.
        titled = [rows for rows, block in zip(rows_of, heads(blocks), strict=True) if block]
        self.heads += len(titled)
        self.strange += sum(tags.keys().isdisjoint(rows) for rows in titled)

    def line(self) -> str:
        """The figures."""
        recall = 1 - len(self.missed) / self.asked
        strange = self.strange / max(self.heads, 1)
        left = f", {self.left:,} files left" if self.name == "grammar" else ""
        pace = self.spent_s / (self.read / 1e6)
        return f"{recall:.3f}, {strange:.3f} of {self.heads:,} not ctags', {pace:.2f} s{left}"


def heads(blocks: list[Block]) -> list[bool]:
    """Of each heading, whether it is a definition's, and not of what comes after one."""
    titles: list[str] = [""] * 7
    own = []
    for block in blocks:
        if block.kind == "heading":
            own.append(bool(block.title) and block.title != titles[block.level])
            titles[block.level] = block.title
    return own


def main() -> None:
    """Compare, and print a line for each reader of each language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=300, help="files of each language")
    parser.add_argument("--missed", type=int, default=5, help="misses that are shown of each")
    parser.add_argument("--only", default="", help="one language alone")
    options = parser.parse_args()
    for language, (endings, kinds) in _LANGUAGES.items():
        if options.only not in ("", language):
            continue
        files = files_of(options.folders, set(endings.split()))
        files = Random(7).sample(files, min(len(files), options.files))
        tags = tags_of(language, set(kinds.split()), files)
        readers = [Reader("forms")]
        if grammars_for(CODE_MIMES[endings.split()[0]]):
            readers.append(Reader("grammar"))
        for path, rows in sorted(tags.items()):
            text = path.read_text("utf-8", "replace").replace("\r\n", "\n")
            for reader in readers:
                reader.compare(path, text, rows)
        for reader in readers:
            if reader.asked:
                asked = f"of {reader.asked:,} in {len(tags):,} files"
                print(f"{language:<11} {reader.name:<8} {reader.line()}, {asked}")
        best = min(readers, key=lambda reader: len(reader.missed))
        for line in Random(7).sample(best.missed, min(len(best.missed), options.missed)):
            print(line)


if __name__ == "__main__":
    main()
