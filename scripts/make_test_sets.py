"""Make further English test sets in BEIR layout, from the sets at hand and from Python's library.

    python scripts/make_test_sets.py DATA OUT

DATA holds `cranfield` and `chunking_evaluation`. Writes under OUT:

long_docs   the documents of chunking_evaluation in parts of about 10,000 characters, which kb cuts into
            many chunks; a question's docs are the parts that overlap with the spans that answer it
titles      Cranfield's abstracts without their titles; a title is to find its abstract
docstrings  functions and classes of Python's standard library without their docstrings; the first
            sentence of a docstring is to find its code
"""

import ast
import csv
import json
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

LONG_DOC_CHARS: Final = 10_000
QUERIES_MAX: Final = 350
FUNCTIONS_MAX: Final = 1_500
_SENTENCE_WORDS: Final = range(4, 26)
_CODE_LINES: Final = range(6, 61)

Row = tuple[str, str, str]
"""Id, title and text of an entry."""
Question = tuple[str, str, list[str]]
"""Id and text of a query, and the entries that answer it."""


def long_docs(source: Path) -> tuple[list[Row], list[Question]]:
    """Parts of whole documents, and the questions about them."""
    parts: dict[str, list[tuple[int, int]]] = {}
    rows: list[Row] = []
    for path in sorted((source / "corpora").glob("*.md")):
        text = path.read_text("utf-8")
        parts[path.stem] = [*cuts(text)]
        rows += [(f"{path.stem}#{start}", "", text[start:end]) for start, end in parts[path.stem]]
    with (source / "queries.jsonl").open(encoding="utf-8") as lines:
        texts = {query["_id"]: query["text"] for query in map(json.loads, lines)}
    questions: list[Question] = []
    with (source / "references_spans.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            corpus = row["corpus_id"]
            wanted = [
                f"{corpus}#{start}"
                for start, end in parts[corpus]
                if any(
                    span["start_index"] < end and start < span["end_index"]
                    for span in row["references"]
                )
            ]
            questions.append((row["query_id"], texts[row["query_id"]], wanted))
    return rows, questions


def cuts(text: str) -> Iterator[tuple[int, int]]:
    """The spans of parts of about LONG_DOC_CHARS characters, which end with a line."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + LONG_DOC_CHARS)
        end = len(text) if end < 0 else end + 1
        yield start, end
        start = end


def titles(source: Path) -> tuple[list[Row], list[Question]]:
    """Abstracts without their titles, which are the queries."""
    rows: list[Row] = []
    questions: list[Question] = []
    with (source / "corpus.jsonl").open(encoding="utf-8") as lines:
        for entry in map(json.loads, lines):
            title, text = entry["title"].strip(), entry["text"].strip()
            text = text.removeprefix(title).strip()
            if title and len(text) > len(title):
                rows.append((entry["_id"], "", text))
                questions.append((entry["_id"], title, [entry["_id"]]))
    times = Counter(title for _, title, _ in questions)
    unique = [question for question in questions if times[question[1]] == 1]
    return rows, sorted(Random(1).sample(unique, QUERIES_MAX))


def docstrings() -> tuple[list[Row], list[Question]]:
    """Functions and classes without their docstrings, whose first sentences are the queries."""
    found = [*documented(Path(sysconfig.get_paths()["stdlib"]))]
    chosen = sorted(Random(1).sample(found, min(FUNCTIONS_MAX, len(found))))
    rows = [(ident, "", code) for ident, code, _ in chosen]
    asked = [(ident, sentence, [ident]) for ident, _, sentence in chosen]
    return rows, sorted(Random(1).sample(asked, min(QUERIES_MAX, len(asked))))


def documented(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Id, code without docstring, and first sentence of what has a docstring of a sentence."""
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).as_posix()
        if re.search(r"(^|/)(test|tests|idlelib|lib2to3|site-packages|__phello__)/", place):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            said = ast.get_docstring(node) or ""
            sentence = " ".join(re.split(r"(?<=\.)\s|\n\s*\n", said)[0].split())
            if len(sentence.split()) not in _SENTENCE_WORDS or len(node.body) < 2:
                continue
            del node.body[0]
            code = ast.unparse(node)
            if len(code.splitlines()) in _CODE_LINES:
                yield f"{place}:{node.lineno}:{node.name}", code, sentence


def write(folder: Path, rows: list[Row], questions: list[Question]) -> None:
    """A test set in BEIR layout."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus = [{"_id": ident, "title": title, "text": text} for ident, title, text in rows]
    queries = [{"_id": ident, "text": text} for ident, text, _ in questions]
    for name, entries in (("corpus", corpus), ("queries", queries)):
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        (folder / f"{name}.jsonl").write_text(text, "utf-8")
    with (folder / "qrels.tsv").open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, delimiter="\t", lineterminator="\n")
        table.writerow(("query-id", "corpus-id", "score"))
        table.writerows((ident, entry, 1) for ident, _, wanted in questions for entry in wanted)
    print(f"{folder.name:12} {len(rows):5} docs  {len(questions):4} queries")


def main() -> None:
    """Make all sets."""
    data, out = map(Path, sys.argv[1:])
    write(out / "long_docs", *long_docs(data / "chunking_evaluation"))
    write(out / "titles", *titles(data / "cranfield"))
    write(out / "docstrings", *docstrings())


if __name__ == "__main__":
    main()
