"""How does a PDF become one text? Its pages follow each other, with a form feed where one ends."""

import re
from collections.abc import Iterable
from typing import Final

from kb.errors import Scanned, Unparsable
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text
from kb.intake.canonicalize.pdf.heads import without_heads
from kb.intake.canonicalize.pdf.layout import page_text
from kb.intake.canonicalize.pdf.outline import with_headings
from kb.intake.canonicalize.pdf.page import PdfFacts
from kb.intake.canonicalize.pdf.pages import OpenPdf, PdfPages, count, open_pdf, read_pages
from kb.intake.canonicalize.pdf.pdfium_file import READING
from kb.intake.canonicalize.title import LINE_TITLE_CHARS_MAX, fallback_title, one_line, own_title
from kb.model.doc import Coverage
from kb.model.text import Canonical

PAGE_BREAK: Final = "\n\f\n"

_SCANNED: Final = (
    "none with text; it is probably scanned: run OCR (for example ocrmypdf) and add the result"
)
_NO_WORDS: Final = (
    "none with text that makes words, since its fonts do not say which letters they show: "
    "run OCR (for example ocrmypdf --force-ocr) and add the result"
)
_LETTERS: Final = re.compile(r"[^\W\d_]")
_PDF_DATE: Final = re.compile(
    r"D:(?P<day>\d{8})(?:(?P<time>\d{4}(?:\d\d)?)(?:(?P<utc>Z)|(?P<zone>[+-]\d\d)'?(?P<min>\d\d)?)?)?"
)


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The pages' text in order, parted by form feeds; page n is the n-th part.

    Words broken at a line's end are mended, and lines joined where a sentence plainly runs on.
    A line that a bookmark names is a heading. Columns are read one after the other; a row of a
    table is a line, its cells parted by ` | `. Heads, feet and page numbers that repeat are left
    out, and so is a page whose letters make no words; `warnings` says how many. What stands in
    forms and in notes ends its page. A file that is too long for its time is cut after the pages
    that were read; `warnings` says how many.

    Raises:
        Encrypted: it needs a password, or a cipher that is not installed.
        Unparsable: its structure, or each of its pages, cannot be read.
        Scanned: no page has text.
    """
    return _read(data, name, by_pdfium=True)


def read_by_pypdf(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """As `read`, without pdfium, which is for files that bring pdfium down."""
    return _read(data, name, by_pdfium=False)


def _read(data: bytes, name: str, *, by_pdfium: bool) -> Canonical:
    with READING, open_pdf(data, name, by_pdfium=by_pdfium) as file:
        pages = read_pages(file)
        facts = _facts(file)
    if pages.failed == len(pages.laid):
        raise Unparsable("not one of its pages can be read; it is damaged", source=name)
    kept = without_heads(pages.laid)
    title = _stated_title(facts.title) or _first_line_title(map(page_text, kept))
    texts = [page_text(page) for page in with_headings(kept, facts.bookmarks)]
    with_text = sum(map(bool, texts))
    if not with_text:
        reason = f"{count(pages.total)}, {_none_with_text(pages)}"
        raise Scanned(reason, source=name, pages=len(pages.laid))
    warnings = [*pages.warnings, *_without_text(len(texts) - with_text - pages.noise, pages.total)]
    if facts.attached:
        texts[-1] = f"{texts[-1]}\n\n{_attached(facts.attached)}".lstrip("\n")
        what = (
            "1 attached file is"
            if len(facts.attached) == 1
            else f"{len(facts.attached)} attached files are"
        )
        warnings.append(f"{what} not read")
    return Canonical(
        markdown=clean_text(PAGE_BREAK.join(texts), keep_pages=True).rstrip("\n") + "\n",
        title=title or fallback_title(name, ""),
        mime="application/pdf",
        date=_stated_date(facts.date),
        coverage=Coverage(pages=pages.total, pages_with_text=with_text),
        warnings=tuple(warnings),
    )


def _none_with_text(pages: PdfPages) -> str:
    return _NO_WORDS if pages.noise else _SCANNED


def _without_text(pages: int, total: int) -> list[str]:
    if pages < 1:
        return []
    return [f"{pages} of {count(total)} {'has' if pages == 1 else 'have'} no text"]


def _attached(names: tuple[str, ...]) -> str:
    """The names of attached files, which end the last page, so that a search finds them."""
    return "\n".join(f"Attached file: {name}" for name in names)


def _facts(file: OpenPdf) -> PdfFacts:
    try:
        return file.facts()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  unreadable metadata is no reason to lose the text
        return PdfFacts()


def _stated_title(stated: str) -> str:
    """The title in the PDF's own metadata, unless it is a file's or a program's, or no words."""
    title = own_title(stated)
    return title if len(_LETTERS.findall(title)) >= 3 else ""


def _stated_date(stated: str) -> str | None:
    """The day and time in the PDF's own metadata, as ISO 8601."""
    match = _PDF_DATE.match(stated)
    if match is None:
        return iso_date(stated) if stated else None
    zone = match["utc"] or (f"{match['zone']}:{match['min'] or '00'}" if match["zone"] else "")
    whole = f"{match['day']}T{match['time']}{zone}" if match["time"] else match["day"]
    return iso_date(whole) or iso_date(match["day"])


def _first_line_title(texts: Iterable[str]) -> str:
    first = next(filter(None, texts), "").lstrip().partition("\n")[0]
    return one_line(first) if len(first) <= LINE_TITLE_CHARS_MAX and _LETTERS.search(first) else ""
