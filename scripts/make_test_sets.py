"""Make further test sets in BEIR layout, from the sets at hand and from what a machine has.

    python scripts/make_test_sets.py DATA OUT

DATA holds `cranfield` and `chunking_evaluation`. Writes under OUT:

long_docs   the documents of chunking_evaluation in parts of about 10,000 characters, of many chunks
            each; a question's docs are the parts that overlap with the spans that answer it
titles      Cranfield's abstracts without their titles; a title is to find its abstract
docstrings  functions and classes of Python's standard library without their docstrings; the first
            sentence of a docstring is to find its code
manuals     pages of the manual without their first line, which is to find them
foreign_manuals  the same for pages in ten other languages, together
synopses    the descriptions of a Debian machine's packages, by their first lines
commits     what the commits of this repository changed, by the first lines of their messages
sections    the sections of kb's documentation, by their headings

The last five are left out where the machine has no such pages, packages or commits, and differ from
machine to machine.
"""

import ast
import csv
import gzip
import json
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final
from unicodedata import normalize

LONG_DOC_CHARS: Final = 10_000
QUERIES_MAX: Final = 350
FUNCTIONS_MAX: Final = 1_500
_SENTENCE_WORDS: Final = range(4, 26)
_CODE_LINES: Final = range(6, 61)
ENTRIES_MAX: Final = 700
_ENTRY_CHARS: Final = 1_500
_LEAST_CHARS: Final = 200
_LEAST_WORDS: Final = 3
_MANUAL: Final = Path("/usr/share/man")
_SECTIONS: Final = ("man2", "man5", "man7", "man8")
_LANGUAGES: Final = ("de", "fr", "sv", "pt", "nl", "uk", "ja", "it", "ru", "pl")
# Marks of letters, as the manual's source has them.
_ACCENTS: Final = dict(zip("'`^~:,", "\u0301\u0300\u0302\u0303\u0308\u0327", strict=True))
_PACKAGES: Final = Path("/var/lib/dpkg/status")
_ROOT: Final = Path(__file__).resolve().parent.parent

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


def described(found: dict[str, tuple[str, str]]) -> tuple[list[Row], list[Question]]:
    """A sample of texts by their ids, and for some the line that describes each and no other."""
    texts = Counter(text for _, text in found.values())
    lines = Counter(line.lower() for line, _ in found.values())
    whole = sorted(
        (ident, line, text[:_ENTRY_CHARS])
        for ident, (line, text) in found.items()
        if len(text) >= _LEAST_CHARS and texts[text] == 1
    )
    chosen = sorted(Random(1).sample(whole, min(ENTRIES_MAX, len(whole))))
    asked = [
        (ident, line, [ident])
        for ident, line, _ in chosen
        if len(line.split()) >= _LEAST_WORDS and lines[line.lower()] == 1
    ]
    return (
        [(ident, "", text) for ident, _, text in chosen],
        sorted(Random(1).sample(asked, min(QUERIES_MAX, len(asked)))),
    )


def manuals(folders: list[Path]) -> dict[str, tuple[str, str]]:
    """Of each page of the manual that says more than a line: what it is, and the rest of it."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.gz")):
        try:
            page = gzip.decompress(path.read_bytes()).decode()
        except (OSError, UnicodeDecodeError):
            continue
        heads = re.split(r"(?m)^\.S[Hh] .*\n", page)
        named = re.split(r" (?:\\-|-|\\(?:em|en)) ", plain(heads[1])) if len(heads) > 1 else []
        if len(named) == 2:
            found[str(path.relative_to(_MANUAL))] = named[1].strip(), plain("\n".join(heads[3:]))
    return found


def plain(page: str) -> str:
    """A page of the manual without its marks."""
    lines = [
        re.sub(r"^\.[A-Za-z]{1,2} ?", "", line)
        for line in page.splitlines()
        if not re.match(r"[.'](\\\"|[a-z]{2}\b|IX|TH|ft|PP|LP|TP|RS|RE|br|sp|so)", line)
    ]
    text = re.sub(r"\\f(?:\[\w*\]|\(..|.)|\\[&|^/,%:]|\\s[-+]?\d", "", "\n".join(lines))
    text = re.sub(r"\\\((?:em|en)|\\-", "-", text)
    text = re.sub(r"\\(?:\[|\()(['`^~:,])(\w)\]?", lambda mark: mark[2] + _ACCENTS[mark[1]], text)
    text = normalize("NFC", text)
    return re.sub(r"\\(?:\[\w+\]|\(..|.)", " ", text).replace('"', "").strip()


def packages() -> dict[str, tuple[str, str]]:
    """Of each package of a Debian machine: what it is, and what else is said of it."""
    found: dict[str, tuple[str, str]] = {}
    if not _PACKAGES.is_file():
        return found
    for stanza in _PACKAGES.read_text("utf-8").split("\n\n"):
        name = re.match(r"Package: (\S+)", stanza)
        said = re.search(r"(?m)^Description: (.+)\n((?: .*\n?)+)", stanza)
        if name and said:
            text = re.sub(r"(?m)^ \.?", "", said[2])
            found[name[1]] = re.sub(r" \(.*\)$| - .*$", "", said[1]), text.strip()
    return found


def commits() -> dict[str, tuple[str, str]]:
    """Of each commit of this repository: the first line of its message, and what it changed."""
    log = subprocess.run(
        ("git", "-C", str(_ROOT), "log", "--no-merges", "--format=%x00%H%n%s", "-p", "-U1"),
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
    ).stdout
    found: dict[str, tuple[str, str]] = {}
    for commit in log.split("\0")[1:]:
        ident, subject, changes = commit.split("\n", 2)
        kept = re.sub(r"(?m)^(?:diff|index|---|\+\+\+|new file|old mode).*\n", "", changes)
        found[ident] = subject, kept.strip()[:_ENTRY_CHARS]
    return found


def sections() -> dict[str, tuple[str, str]]:
    """Of each section of the documentation: its heading, and what it says under it."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((_ROOT / "docs").rglob("*.md")):
        parts = re.split(r"(?m)^#+ (.+)\n", path.read_text("utf-8"))
        for place, (heading, text) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
            line = re.sub(r"^\d+\. ", "", heading)
            found[f"{path.relative_to(_ROOT)}#{place}"] = line, text.strip()
    return found


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
    print(f"{folder.name:16} {len(rows):5} docs  {len(questions):4} queries")


def main() -> None:
    """Make all sets."""
    data, out = map(Path, sys.argv[1:])
    write(out / "long_docs", *long_docs(data / "chunking_evaluation"))
    write(out / "titles", *titles(data / "cranfield"))
    write(out / "docstrings", *docstrings())
    for name, found in (
        ("manuals", manuals([_MANUAL / section for section in _SECTIONS])),
        ("foreign_manuals", manuals([_MANUAL / language for language in _LANGUAGES])),
        ("synopses", packages()),
        ("commits", commits()),
        ("sections", sections()),
    ):
        if found:
            write(out / name, *described(found))


if __name__ == "__main__":
    main()
