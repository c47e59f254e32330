"""What does a PDF say? Its rooms are loaded when the first one is read."""

from kb.model.text import Canonical


def read(data: bytes, name: str) -> Canonical:
    """The pages' text in order, parted by form feeds; page n is the n-th part.

    Words broken at a line's end are mended, and lines joined where a sentence plainly runs on.
    Columns are read one after the other; a row of a table is a line, its cells parted by ` | `.
    Heads, feet and page numbers that repeat are left out, and so is a page whose letters make no
    words; `warnings` says how many. What stands in forms and in notes ends its page. A file that
    is too long for its time is cut after the pages that were read; `warnings` says how many.

    Raises:
        Encrypted: it needs a password, or a cipher that is not installed.
        Unparsable: its structure, or each of its pages, cannot be read.
        EmptySource: no page has text.
    """
    from kb.intake.canonicalize.pdf_document import read_document

    return read_document(data, name)
