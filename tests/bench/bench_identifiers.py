"""How often is what a programmer copies the first hit: a name in code, or a file's name?

    python tests/bench/bench_identifiers.py FOLDER [--count 200] [--home KEEP]

Adds a folder of Python to a new home. Half of the queries are functions, methods and classes that
are defined once in it, half are names of files with their endings; both are drawn by a fixed seed.
A hit is right where its file defines the name, or has it. Prints what did not come first.
"""

import argparse
import ast
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import kb

_HITS = 10
_LETTERS_MIN = 4


def definitions(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The name and the file of every function, method and class in Python's files of these."""
    for path in sorted(path for path in paths if path.endswith(".py")):
        for node in ast.walk(ast.parse(Path(path).read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name, path


def unique(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """The names that occur once, with their files; without `__init__` and its like."""
    places: dict[str, list[str]] = {}
    for name, path in pairs:
        places.setdefault(name, []).append(path)
    return {
        name: paths[0]
        for name, paths in places.items()
        if len(paths) == 1 and len(name) >= _LETTERS_MIN and not name.startswith("__")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--home", type=Path, help="keep the home here and use it again")
    args = parser.parse_args()
    folder = args.folder.resolve()
    random = Random(1)
    with (
        tempfile.TemporaryDirectory() as temporary,
        kb.open(args.home or Path(temporary) / "home") as home,
    ):
        home.add(folder)
        taken = {doc.source for doc in home.docs()}
        named = unique((path.name, str(path)) for path in folder.rglob("*") if str(path) in taken)
        defined = unique(definitions(taken))
        for kind, places in (("defined", defined), ("file", named)):
            asked = random.sample(sorted(places), min(args.count // 2, len(places)))
            for mode in ("lexical", "hybrid"):
                missed = []
                for query in asked:
                    hits = home.search(query, k=_HITS, mode=mode).hits
                    docs = list(dict.fromkeys(hit.source for hit in hits))
                    if not docs or docs[0] != places[query]:
                        rank = docs.index(places[query]) + 1 if places[query] in docs else 0
                        missed.append((query, rank, docs[0] if docs else ""))
                print(f"{kind:8} {mode:8} first {len(asked) - len(missed)} of {len(asked)}")
                for query, rank, first in missed:
                    print(f"  {rank or '-':>3} {query}: {Path(first).name}")


if __name__ == "__main__":
    main()
