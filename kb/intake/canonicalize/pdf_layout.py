"""In which order is a page read? Lines become text."""

from typing import Final

from kb.intake.canonicalize.pdf_page import PdfPage

_SENTENCE_ENDS: Final = tuple(".!?:;。！？：；…")


def page_text(page: PdfPage) -> str:
    """The page's lines in reading order, mended; empty where it has no letter or digit."""
    return mended([line.text for line in page.lines])


def mended(lines: list[str]) -> str:
    """One page's lines, mended; empty where there is no letter or digit on it."""
    kept: list[str] = []
    for line in lines:
        if kept and _runs_on(kept[-1], line):
            last = kept[-1]
            kept[-1] = last[:-1] + line if last[-1] in "-\u00ad" else f"{last} {line.lstrip()}"
        else:
            kept.append(line)
    text = "\n".join(kept).strip("\n")
    return text if any(map(str.isalnum, text)) else ""


def _runs_on(last: str, line: str) -> bool:
    """Whether `line` continues the sentence, or the broken word, that ends `last`."""
    start = line.lstrip()[:1]
    if not last or not start.islower():
        return False
    if last[-1] in "-\u00ad":
        return last[-2:-1].islower() and line[:1] == start
    return not last.endswith(_SENTENCE_ENDS)
