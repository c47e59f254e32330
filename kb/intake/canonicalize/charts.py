"""What do the charts and diagrams in an Office document say? Numbers as tables, words as lists."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.archive import ZippedDocument
from kb.intake.canonicalize.blocks import table

if TYPE_CHECKING:
    from lxml.etree import _Element

_SERIES_MAX: Final = 64
_POINTS_MAX: Final = 1_000
_CHARTS_MAX: Final = 200


def drawn(archive: ZippedDocument, part: str) -> Iterator[str]:
    """The charts and the diagrams that a part shows, in the order of their names.

    Of a chart the title, and a table of its categories with a column for each series; of a
    diagram its words.
    """
    related = sorted(set(archive.relations(part).values()))
    shown = [entry for entry in related if entry[0] in ("chart", "diagramData")]
    for kind, target in shown[:_CHARTS_MAX]:
        root = archive.xml(target)
        if root is None:
            continue
        if kind == "chart":
            yield from _chart(root)
        else:
            paragraphs = ("".join(t.text or "" for t in p.iter("{*}t")) for p in root.iter("{*}p"))
            yield "\n".join(f"- {' '.join(words.split())}" for words in paragraphs if words.strip())


def _chart(root: "_Element") -> Iterator[str]:
    title = root.find("{*}chart/{*}title")
    words = "" if title is None else "".join(t.text or "" for t in title.iter("{*}t", "{*}v"))
    if words.strip():
        yield f"Chart: {' '.join(words.split())}"
    columns: list[tuple[str, dict[int, str]]] = []
    labels: dict[int, str] = {}
    for series in root.iter("{*}ser"):
        if len(columns) == _SERIES_MAX:
            break
        labels = labels or _points(series, "cat", "xVal")
        name = series.find("{*}tx")
        called = "" if name is None else next((v.text or "" for v in name.iter("{*}v")), "")
        columns.append((called, _points(series, "val", "yVal")))
    if not columns:
        return
    at = sorted({*labels, *(number for _, values in columns for number in values)})
    rows = [[labels.get(n, ""), *(values.get(n, "") for _, values in columns)] for n in at]
    yield table([["", *(name for name, _ in columns)], *rows])


def _points(series: "_Element", *kinds: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for kind in kinds:
        for point in series.iterfind(f"{{*}}{kind}//{{*}}pt"):
            number, value = point.get("idx", ""), point.find("{*}v")
            if number.isdecimal() and int(number) < _POINTS_MAX and value is not None:
                found.setdefault(int(number), (value.text or "").removesuffix(".0"))
    return found
