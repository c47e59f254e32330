"""How well does kb find the article of a web page, beside plain trafilatura?

Measured by trafilatura's own method, on pages that its authors marked by hand. FOLDER is the folder
`tests` of trafilatura's source package: `realworld_tests.py` says what the text of each page in
`cache/` has to contain and what not. What is wanted and found is a true positive, wanted and
missed a false negative, unwanted and found a false positive. Run it by
`make bench-articles DATA=FOLDER`; docs/measured.md says where the folder comes from.
"""

import ast
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from msgspec import Struct

from kb.intake.canonicalize import html

_ROUNDS = 5
_NO_WORD = re.compile(r"[\W_]+")


class Page(Struct, frozen=True, kw_only=True):
    """A page and what was marked on it by hand."""

    path: Path
    wanted: list[str]
    unwanted: list[str]


class Score(Struct, kw_only=True):
    """What a reader found on all pages, and the processor time it took."""

    found: int = 0
    missed: int = 0
    wrong: int = 0
    cpu_ms: float = 0

    def __str__(self) -> str:
        precision = self.found / (self.found + self.wrong)
        recall = self.found / (self.found + self.missed)
        f1 = 2 * precision * recall / (precision + recall)
        return (
            f"precision {precision:.4f}, recall {recall:.4f}, F1 {f1:.4f}; {self.found} found, "
            f"{self.missed} missed, {self.wrong} wrong; {self.cpu_ms:.0f} ms of processor time"
        )


def marked_pages(folder: Path) -> list[Page]:
    """The pages with the segments that the asserts after each `load_mock_page(address)` name."""
    module = ast.parse((folder / "realworld_tests.py").read_text("utf-8"))
    names: dict[str, str] = {}
    segments: dict[str, dict[bool, list[str]]] = defaultdict(lambda: {True: [], False: []})
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="MOCK_PAGES")]):
                names = ast.literal_eval(statement.value)
            case ast.FunctionDef():
                address = ""
                for inner in _statements(statement.body):
                    match inner:
                        case ast.Assign(
                            value=ast.Call(
                                func=ast.Name(id="load_mock_page"),
                                args=[ast.Constant(value=str(address)), *_],
                            )
                        ):
                            pass
                        case ast.Assert() if address in names:
                            for segment, is_wanted in _segments(inner.test):
                                segments[address][is_wanted].append(segment)
    return [
        Page(path=path, wanted=marks[True], unwanted=marks[False])
        for address, marks in segments.items()
        if (path := folder / "cache" / names[address]).is_file()
    ]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements in order; of a choice both branches."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _statements(statement.body + statement.orelse)
        else:
            yield statement


def _segments(test: ast.expr) -> Iterator[tuple[str, bool]]:
    """Each `"…" in result` and `"…" not in result` of an assert, and whether it is wanted."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _segments(value)
        case ast.Compare(
            left=ast.Constant(value=str(segment)),
            ops=[(ast.In() | ast.NotIn()) as operator],
            comparators=[ast.Name(id="result")],
        ):
            yield segment, isinstance(operator, ast.In)


def words(text: str) -> str:
    """The words with one blank between them: neither marks of markdown nor line ends count."""
    return _NO_WORD.sub(" ", text).strip()


def by_kb(data: bytes) -> str:
    return html.read(data, "page.html").markdown


def by_trafilatura(data: bytes) -> str:
    import trafilatura

    return trafilatura.extract(data, include_comments=False, include_tables=True) or ""


READERS: dict[str, Callable[[bytes], str]] = {"kb": by_kb, "trafilatura": by_trafilatura}


def main(folder: Path) -> None:
    scores = {name: Score() for name in READERS}
    ratios = []
    pages = marked_pages(folder)
    for page in pages:
        data = page.path.read_bytes()
        mistakes: dict[str, set[str]] = {}
        cpu_ms: dict[str, list[float]] = {name: [] for name in READERS}
        for _ in range(_ROUNDS):
            for name, reader in READERS.items():
                started = time.process_time()
                text = reader(data)
                cpu_ms[name].append(1000 * (time.process_time() - started))
                mistakes[name] = _mistakes(page, words(text))
        for name, score in scores.items():
            missed = sum(mistake.startswith("missed") for mistake in mistakes[name])
            score.missed += missed
            score.found += len(set(page.wanted)) - missed
            score.wrong += len(mistakes[name]) - missed
            score.cpu_ms += median(cpu_ms[name])
        ratios.append(median(cpu_ms["kb"]) / median(cpu_ms["trafilatura"]))
        if any(mistakes.values()):
            print(page.path.name)
        for mistake in sorted(set.union(*mistakes.values())):
            print(f"  {' and '.join(n for n in READERS if mistake in mistakes[n])}: {mistake}")
    print(f"{len(pages)} pages; kb takes {median(ratios):.2f} times as long (median)")
    print(f"at most {max(ratios):.2f} times")
    for name, score in scores.items():
        print(f"{name}: {score}")


def _mistakes(page: Page, text: str) -> set[str]:
    missed = {f"missed {segment}" for segment in page.wanted if words(segment) not in text}
    return missed | {f"wrong {segment}" for segment in page.unwanted if words(segment) in text}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
