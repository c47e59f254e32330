"""How well is a file found by its name?

    python tests/bench/bench_names.py FOLDER [--limit 400]

Adds a folder to a new home, then asks for each file by the words of its name, as a person types
them. Prints how often the file is the first doc and how often it is among the first ten. Files
whose names have the same words count as one.
"""

import argparse
import re
import tempfile
from pathlib import Path

import kb

_HITS = 30
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def typed(name: str) -> str:
    """The words of a file's name, lower-case, with single spaces."""
    return " ".join(re.findall(r"[^\W_]+", _CAMEL.sub(" ", name))).lower()


def ranks(home: kb.Home, mode: str, names: dict[str, set[str]]) -> dict[str, int]:
    """The rank of the first doc with each name; 0 where it is not among the hits."""
    found: dict[str, int] = {}
    for query, sources in names.items():
        answer = home.search(query, k=_HITS, mode=mode)
        docs = list(dict.fromkeys(hit.source for hit in answer.hits))
        places = [place for place, source in enumerate(docs, 1) if source in sources]
        found[query] = places[0] if places else 0
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=400)
    parser.add_argument("--home", type=Path, help="keep the home here and use it again")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        kb.open(args.home or Path(folder) / "home") as home,
    ):
        home.add(args.folder.resolve())
        names: dict[str, set[str]] = {}
        for doc in home.docs():
            names.setdefault(typed(Path(doc.source).stem), set()).add(doc.source)
        asked = dict(sorted((q, s) for q, s in names.items() if q)[: args.limit])
        for mode in ("lexical", "dense", "hybrid"):
            found = ranks(home, mode, asked)
            first = sum(rank == 1 for rank in found.values())
            ten = sum(1 <= rank <= 10 for rank in found.values())
            print(f"{mode:8} first {first} in ten {ten} of {len(found)}")
            if mode == "hybrid":
                for query, rank in found.items():
                    if rank != 1:
                        print(f"  {rank or '-':>3} {query}")


if __name__ == "__main__":
    main()
