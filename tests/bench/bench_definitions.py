"""How many of the definitions that ctags finds are headings of kb's passages, by language?

    python tests/bench/bench_definitions.py FOLDER... [--files 300] [--missed 5]

Takes files of each language from the folders, drawn by a fixed seed, and compares the lines of
functions, methods, classes and other types that universal-ctags names with the first lines of kb's
sections. Declarations without a body are not asked for, nor are lines over 500 characters. Prints
the recall of each language, and some definitions that are missed.
"""

import argparse
import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path
from random import Random

from kb.intake.chunker.definitions import code_blocks

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


def headed(text: str) -> set[int]:
    """The lines, from 1, that are in a heading: a definition's first, and its comments."""
    return {
        line
        for block in code_blocks(text)
        if block.kind == "heading"
        for line in range(text.count("\n", 0, block.start), text.count("\n", 0, block.end) + 1)
    }


def main() -> None:
    """Compare, and print a line for each language."""
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
        total = 0
        missed = []
        for path, rows in sorted(tags.items()):
            text = path.read_text("utf-8", "replace").replace("\r\n", "\n")
            lines = text.split("\n")
            headings = {row + 1 for row in headed(text)}
            for row, what in sorted(rows.items()):
                written = lines[row - 1] if row <= len(lines) else ""
                is_declared = written.rstrip().endswith(";") and "{" not in written
                if len(written) > _LINE_CHARS_MAX or is_declared:
                    continue
                total += 1
                if row not in headings:
                    missed.append(f"    {path}:{row}: {what}: {written.strip()[:100]}")
        if total:
            recall = 1 - len(missed) / total
            print(f"{language:<11} {recall:.3f} of {total:,} in {len(tags):,} files")
            for line in Random(7).sample(missed, min(len(missed), options.missed)):
                print(line)


if __name__ == "__main__":
    main()
