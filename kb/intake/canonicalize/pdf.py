"""What does a PDF say? The text of its pages, with a form feed where one ends.

pdfium reads it; pypdf reads the files and the pages that pdfium cannot.
"""

import re
from typing import Final

from msgspec import Struct

from kb.errors import EmptySource, Unparsable
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text
from kb.intake.canonicalize.pdf_layout import page_text
from kb.intake.canonicalize.pdf_page import PdfFacts, PdfFile
from kb.intake.canonicalize.pdf_pdfium import READING, PdfiumFile
from kb.intake.canonicalize.pdf_pypdf import PypdfFile
from kb.intake.canonicalize.title import LINE_TITLE_CHARS_MAX, fallback_title, one_line
from kb.model.doc import Coverage
from kb.model.text import Canonical

PAGE_BREAK: Final = "\n\f\n"
PAGES_MAX: Final = 20_000
CHARS_MAX: Final = 64 * 1024 * 1024

_SCANNED = (
    "none with text; it is probably scanned: run OCR (for example ocrmypdf) and add the result"
)
_TITLE_OF_A_FILE: Final = re.compile(
    r"\.(?:docx?|odt|rtf|pdf|tex|dvi|indd|qxd|pptx?|xlsx?|txt|html?|pages|md)$"
    r"|^(?:microsoft (?:word|powerpoint|excel)\b|powerpoint presentation$|slide \d+$|layout \d+$"
    r"|document\d*$|untitled|\(?anonymous\)?$|no title$|title$|unknown$)",
    re.IGNORECASE,
)
_LETTERS: Final = re.compile(r"[^\W\d_]")
_PDF_DATE: Final = re.compile(
    r"D:(?P<day>\d{8})(?:(?P<time>\d{4}(?:\d\d)?)(?:(?P<utc>Z)|(?P<zone>[+-]\d\d)'?(?P<min>\d\d)?)?)?"
)


class _Pages(Struct, frozen=True, kw_only=True):
    texts: list[str]
    total: int
    warnings: list[str]
    failed: int

    @property
    def with_text(self) -> int:
        return sum(1 for text in self.texts if text)


def read(data: bytes, name: str) -> Canonical:
    """The pages' text in order, joined by `PAGE_BREAK`; page n is the n-th part.

    Words broken at a line's end are mended, and lines joined where a sentence plainly runs on.

    Raises:
        Encrypted: it needs a password, or a cipher that is not installed.
        Unparsable: its structure, or each of its pages, cannot be read.
        EmptySource: no page has text.
    """
    with READING, _open(data, name) as file:
        pages = _read_pages(file)
        facts = _facts(file)
    if pages.failed and pages.failed == len(pages.texts):
        raise Unparsable("not one of its pages can be read; it is damaged", source=name)
    if not pages.with_text:
        raise EmptySource(f"{_count(pages.total)}, {_SCANNED}", source=name)
    _name_attached(facts.attached, pages)
    markdown = clean_text(PAGE_BREAK.join(pages.texts), keep_pages=True).rstrip("\n") + "\n"
    missing = len(pages.texts) - pages.with_text
    if missing:
        verb = "has" if missing == 1 else "have"
        pages.warnings.append(f"{missing} of {_count(pages.total)} {verb} no text")
    return Canonical(
        markdown=markdown,
        title=_stated_title(facts.title)
        or _first_line_title(pages.texts)
        or fallback_title(name, ""),
        mime="application/pdf",
        date=_stated_date(facts.date),
        coverage=Coverage(pages=pages.total, pages_with_text=pages.with_text),
        warnings=tuple(pages.warnings),
    )


def _open(data: bytes, name: str) -> PdfFile:
    """The file as pdfium opens it, else as pypdf does."""
    try:
        return PdfiumFile(data)
    except RuntimeError:
        return PypdfFile(data, name)


def _facts(file: PdfFile) -> PdfFacts:
    try:
        return file.facts()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  unreadable metadata is no reason to lose the text
        return PdfFacts()


def _read_pages(file: PdfFile) -> _Pages:
    texts: list[str] = []
    warnings: list[str] = []
    total, failed, chars = file.page_count, 0, 0
    for number in range(min(total, PAGES_MAX)):
        try:
            text = page_text(file.read_page(number))
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  one bad page does not cost the others
            text, failed = "", failed + 1
            if failed == 1:
                warnings.append(f"page {number + 1} cannot be read")
        chars += len(text)
        if chars > CHARS_MAX:
            warnings.append(
                f"cut after {_count(number)} of {total}: more than {CHARS_MAX} characters"
            )
            break
        texts.append(text)
    if total > PAGES_MAX:
        warnings.append(f"only the first {PAGES_MAX} of {_count(total)} were read")
    if failed > 1:
        warnings[0] = f"{failed} of {_count(total)} cannot be read"
    return _Pages(texts=texts, total=total, warnings=warnings, failed=failed)


def _name_attached(names: tuple[str, ...], pages: _Pages) -> None:
    """The names of attached files end the last page, so that a search finds them."""
    if not names:
        return
    listed = "\n".join(f"Attached file: {name}" for name in names)
    pages.texts[-1] = f"{pages.texts[-1]}\n\n{listed}".lstrip("\n")
    what = "1 attached file is" if len(names) == 1 else f"{len(names)} attached files are"
    pages.warnings.append(f"{what} not read")


def _stated_title(stated: str) -> str:
    """The title in the PDF's own metadata, unless it is a file's or a program's."""
    title = one_line(stated)
    if _TITLE_OF_A_FILE.search(title) or len(_LETTERS.findall(title)) < 3:
        return ""
    return title


def _stated_date(stated: str) -> str | None:
    """The day and time in the PDF's own metadata, as ISO 8601."""
    match = _PDF_DATE.match(stated)
    if match is None:
        return iso_date(stated) if stated else None
    zone = match["utc"] or (f"{match['zone']}:{match['min'] or '00'}" if match["zone"] else "")
    whole = f"{match['day']}T{match['time']}{zone}" if match["time"] else match["day"]
    return iso_date(whole) or iso_date(match["day"])


def _first_line_title(texts: list[str]) -> str:
    first = next(text for text in texts if text).lstrip().partition("\n")[0]
    return one_line(first) if len(first) <= LINE_TITLE_CHARS_MAX and _LETTERS.search(first) else ""


def _count(pages: int) -> str:
    return f"{pages} page" if pages == 1 else f"{pages} pages"
