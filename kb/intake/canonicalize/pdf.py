"""What does a PDF say? The text of its pages, with a form feed where one ends."""

import io
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import EmptySource, Encrypted, Unparsable
from kb.intake.canonicalize.decode import clean_text
from kb.intake.canonicalize.title import LINE_TITLE_CHARS_MAX, fallback_title, one_line
from kb.model.doc import Coverage
from kb.model.text import Canonical

if TYPE_CHECKING:
    import pypdf

PAGE_BREAK: Final = "\n\f\n"
PAGES_MAX: Final = 20_000
CHARS_MAX: Final = 64 * 1024 * 1024

_SCANNED = (
    "none with text; it is probably scanned: run OCR (for example ocrmypdf) and add the result"
)
# Typesetting, not spelling: one glyph for letters that a search types one by one.
_LIGATURES: Final = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
_SENTENCE_ENDS: Final = tuple(".!?:;。！？：；…")
_TITLE_OF_A_FILE: Final = re.compile(
    r"\.(?:docx?|odt|rtf|pdf|tex|dvi|indd|qxd|pptx?|xlsx?|txt|html?|pages|md)$"
    r"|^(?:microsoft (?:word|powerpoint|excel)\b|powerpoint presentation$|slide \d+$|layout \d+$"
    r"|document\d*$|untitled|\(?anonymous\)?$|no title$|title$|unknown$)",
    re.IGNORECASE,
)
_LETTERS: Final = re.compile(r"[^\W\d_]")


class _Pages(Struct, frozen=True, kw_only=True):
    texts: list[str]
    total: int
    warnings: list[str]
    failed: int

    @property
    def with_text(self) -> int:
        return sum(1 for text in self.texts if text)


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The pages' text in order, joined by `PAGE_BREAK`; page n is the n-th part.

    Words broken at a line's end are mended, and lines joined where a sentence plainly runs on.

    Raises:
        Encrypted: it needs a password, or a cipher that is not installed.
        Unparsable: its structure, or each of its pages, cannot be read.
        EmptySource: no page has text.
    """
    reader = _open(data, name)
    pages = _read_pages(reader)
    if pages.failed and pages.failed == len(pages.texts):
        raise Unparsable("not one of its pages can be read; it is damaged", source=name)
    if not pages.with_text:
        raise EmptySource(f"{_count(pages.total)}, {_SCANNED}", source=name)
    markdown = clean_text(PAGE_BREAK.join(pages.texts), keep_pages=True).rstrip("\n") + "\n"
    missing = len(pages.texts) - pages.with_text
    if missing:
        verb = "has" if missing == 1 else "have"
        pages.warnings.append(f"{missing} of {_count(pages.total)} {verb} no text")
    return Canonical(
        markdown=markdown,
        title=_stated_title(reader) or _first_line_title(pages.texts) or fallback_title(name, ""),
        mime="application/pdf",
        coverage=Coverage(pages=pages.total, pages_with_text=pages.with_text),
        warnings=tuple(pages.warnings),
    )


def _open(data: bytes, name: str) -> "pypdf.PdfReader":
    """A reader whose pages can be counted; the empty password has been tried."""
    import logging

    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        len(reader.pages)
    except DependencyError:
        raise Encrypted(
            "it is encrypted with AES; install `cryptography` to read it", source=name
        ) from None
    except FileNotDecryptedError:
        raise Encrypted(
            "it needs a password; remove it (for example with qpdf) and add the result", source=name
        ) from None
    except MemoryError:
        raise
    except Exception as error:
        raise Unparsable(
            "it is damaged, or not a PDF; try to repair it (for example with qpdf)", source=name
        ) from error
    return reader


def _read_pages(reader: "pypdf.PdfReader") -> _Pages:
    texts: list[str] = []
    warnings: list[str] = []
    total, failed, chars = len(reader.pages), 0, 0
    for number in range(min(total, PAGES_MAX)):
        try:
            text = _page_text(reader.pages[number].extract_text())
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


def _page_text(raw: str) -> str:
    """One page's lines, cleaned and mended; empty where there is no letter or digit on it."""
    lines: list[str] = []
    for line in clean_text(raw).translate(_LIGATURES).split("\n"):
        line = line.rstrip()  # noqa: PLW2901
        if lines and _runs_on(lines[-1], line):
            last = lines[-1]
            lines[-1] = last[:-1] + line if last[-1] in "-\u00ad" else f"{last} {line.lstrip()}"
        else:
            lines.append(line)
    text = "\n".join(lines).strip("\n")
    return text if any(map(str.isalnum, text)) else ""


def _runs_on(last: str, line: str) -> bool:
    """Whether `line` continues the sentence, or the broken word, that ends `last`."""
    start = line.lstrip()[:1]
    if not last or not start.islower():
        return False
    if last[-1] in "-\u00ad":
        return last[-2:-1].islower() and line[:1] == start
    return not last.endswith(_SENTENCE_ENDS)


def _stated_title(reader: "pypdf.PdfReader") -> str:
    """The title in the PDF's own metadata, unless it is a file's or a program's."""
    try:
        stated = reader.metadata.title if reader.metadata is not None else None
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  unreadable metadata is no reason to lose the text
        return ""
    title = one_line(stated) if isinstance(stated, str) else ""
    if _TITLE_OF_A_FILE.search(title) or len(_LETTERS.findall(title)) < 3:
        return ""
    return title


def _first_line_title(texts: list[str]) -> str:
    first = next(text for text in texts if text).lstrip().partition("\n")[0]
    return one_line(first) if len(first) <= LINE_TITLE_CHARS_MAX and _LETTERS.search(first) else ""


def _count(pages: int) -> str:
    return f"{pages} page" if pages == 1 else f"{pages} pages"
