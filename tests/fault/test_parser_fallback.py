"""What is read when a document brings its reader down?"""

import sys

import pytest
from pdf_shapes import drawn, lines

from kb.errors import Unparsable
from kb.intake.canonicalize import CanonicalizeInput, Parser

# A child that dies of PDFs unless it is the second one, which then reads as it should.
DIES_OF_PDFS = """
import os, signal, sys
from kb.intake.canonicalize import child, pdf
import kb.intake.canonicalize.pdf.pages as pages
def die(data):
    {how}
pages.PdfiumFile = die
sys.exit(child.main(2 << 30, {cpu_s}))
"""


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGSEGV)", "while True: pass"])
def test_what_brings_pdfium_down_is_read_by_pypdf(how: str) -> None:
    """A PDF that ends its child, by a crash or a limit, is read in a new one by pypdf."""
    program = DIES_OF_PDFS.format(how=how, cpu_s=1)
    data = drawn(lines(["Some words of a page."]))
    with Parser(argv=[sys.executable, "-c", program], cpu_s_max=1) as parser:
        source = CanonicalizeInput(data=data, mime="application/pdf", name="a.pdf")
        result = parser.parse(source)
        assert parser.child_pid is not None
    assert result.markdown == "Some words of a page.\n"
    assert result.warnings[-1] == "read by another reader, since its own one failed"


def test_what_no_reader_can_read_has_the_first_error() -> None:
    """The second child that dies changes nothing of what is said, and there is no third."""
    program = "import os, signal; os.read(0, 9); os.kill(os.getpid(), signal.SIGSEGV)"
    source = CanonicalizeInput(data=b"%PDF-1.7", mime="application/pdf", name="a.pdf")
    with Parser(argv=[sys.executable, "-c", program]) as parser:
        with pytest.raises(Unparsable, match=r"a\.pdf: its reader crashed \(SIGSEGV\)"):
            parser.parse(source)
        assert parser.child_pid is None
