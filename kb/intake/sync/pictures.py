"""What becomes of pictures, and of files whose pages are pictures? They wait for OCR."""

from typing import Final, Literal

from kb.errors import Scanned, Unsupported
from kb.intake.canonicalize import CanonicalizeInput, Parser
from kb.intake.recognize.scans import stub_of
from kb.intake.sync.report import Tally
from kb.model.file_kinds import is_named
from kb.model.text import Canonical

Ocr = Literal["there", "missing", "off"]
"""Whether pages that are pictures are read in the background, would be, or are not meant to be."""
_ADVICE: Final = {
    "missing": "apt install tesseract-ocr, then add it again",
    "off": "ingest.ocr is off: set it to auto, then add it again",
}


def parsed(parser: Parser, source: CanonicalizeInput, ocr: Ocr, tally: Tally) -> Canonical:
    """The source as its parser reads it; a file of pictures is its name where they will be read.

    Counts a file with such pages. Raises as the parser does.
    """
    try:
        canonical = parser.parse(source)
    except Scanned as scan:
        if ocr != "there":
            if ocr == "missing":
                tally.has_pictures(can_be_read=False)
            reason = scan.reason.partition(": run OCR")[0]
            raise Scanned(f"{reason}; {_ADVICE[ocr]}", source=source.name) from None
        from kb.intake.canonicalize.title import fallback_title

        canonical = stub_of(scan, fallback_title(source.name, ""))
    if ocr != "off" and lacks_text(canonical):
        tally.has_pictures(can_be_read=ocr == "there")
    return canonical


def refuse_named_at_address(mime: str, name: str) -> None:
    """Raise Unsupported for what is known by its name: most pictures are parts of pages."""
    if is_named(mime):
        raise Unsupported(f"{mime} at an address is not taken; save it, add the file", source=name)


def lacks_text(canonical: Canonical) -> bool:
    """Whether pages of it have no text."""
    return canonical.coverage is not None and canonical.coverage.lacks_text
