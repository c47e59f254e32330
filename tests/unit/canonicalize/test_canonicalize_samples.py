"""Real files, when they lie beside the repository: each is read or refused, nothing else."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.errors import Encrypted, Scanned, SourceError, Unsupported
from kb.intake.canonicalize import CanonicalizeInput, Parser, detect_mime
from kb.model.doc import Coverage
from kb.model.text import Canonical

SAMPLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "files"

pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="no sample files beside the repository"
)


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    with Parser(cpu_s_max=120) as parser:
        yield parser


def read(parser: Parser, path: Path) -> Canonical | SourceError:
    data = path.read_bytes()
    source = CanonicalizeInput(data=data, mime=detect_mime(data, path.name), name=path.name)
    try:
        return parser.parse(source)
    except SourceError as error:
        return error


def sample(pattern: str) -> Path:
    return next(SAMPLES.glob(f"**/{pattern}"))


def test_every_file_is_read_or_refused(parser: Parser) -> None:
    """No file of any kind raises anything but a SourceError, or gives text that is none."""
    outcomes: Counter[str] = Counter()
    for path in sorted(
        p for p in SAMPLES.rglob("*") if p.is_file() and p.stat().st_size < 1_500_000
    ):
        result = read(parser, path)
        outcomes[type(result).__name__] += 1
        if isinstance(result, SourceError):
            assert str(result).startswith(f"{path.name}: ")
            assert "\n" not in str(result)
        else:
            assert result.markdown.strip(), path
            assert result.title.strip(), path
            assert "\0" not in result.markdown.encode().decode()
    assert outcomes["Canonical"] > 100


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("sample-arabic-1.txt", 0x600, 0x6FF),
        ("sample-bulgarian.txt", 0x400, 0x4FF),
        ("sample-chinese.txt", 0x4E00, 0x9FFF),
        ("sample-greek.txt", 0x370, 0x3FF),
        ("sample-greek-2.txt", 0x370, 0x3FF),
        ("sample-hebrew-2.txt", 0x590, 0x5FF),
        ("sample-hebrew-3.txt", 0x590, 0x5FF),
        ("sample-korean.txt", 0xAC00, 0xD7A3),
        ("sample-russian.txt", 0x400, 0x4FF),
        ("sample-russian-3.txt", 0x400, 0x4FF),
    ],
)
def test_scripts(parser: Parser, name: str, low: int, high: int) -> None:
    """Four fifths of the letters are of the script that the file is in."""
    result = read(parser, sample(name))
    assert isinstance(result, Canonical)
    letters = [c for c in result.markdown if c.isalpha() and ord(c) > 0x7F]
    assert sum(low <= ord(c) <= high for c in letters) > 0.8 * len(letters)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sample-french-1.txt", "NÉ LE 15 JANVIER 1622"),
        ("sample-turkish.txt", "İstanbul, Türkiye'nin en kalabalık"),
        ("test_mskanji.csv", "佐藤太郎 | 30 | 東京"),
        ("pg_essay_4.html", "It has a dramatic name, Save Thousands of Lives, because"),
        ("test_wikipedia.html", "Microsoft Corporation"),
        ("GeoTopo-komprimiert.pdf", "Geometrie und Topologie"),
        ("multicolumn.pdf", "Nulla et lectus vestibulum urna fringilla ultrices."),
        ("multicolumn.pdf", "Country | Population (millions) | Area (km2"),
        ("DeepSeek_R1.pdf", "MMLU (Pass@1) | 88.3 | 87.2 | 88.5 | 85.2 | 91.8 | 90.8"),
        ("libreoffice-form.pdf", "First Name: Alice"),
        ("annotated_pdf.pdf", "This is a text annotation."),
        ("with-attachment.pdf", "Attached file: "),
    ],
)
def test_words_survive(parser: Parser, name: str, words: str) -> None:
    """A phrase of each file is found in its text, whole."""
    result = read(parser, sample(name))
    assert isinstance(result, Canonical)
    assert words in result.markdown


def test_a_long_report_is_read_in_order(parser: Parser) -> None:
    """Hundreds of pages: no page number ends a page, and a list's points begin their lines."""
    result = read(parser, sample("uber_2021.pdf"))
    assert isinstance(result, Canonical)
    assert result.coverage == Coverage(pages=307, pages_with_text=307)
    pages = result.markdown.split("\f")
    assert not any(page.strip().endswith(f"\n{at}") for at, page in enumerate(pages))
    assert "\n• our ability to effectively manage our growth and maintain" in pages[3]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("libreoffice-writer-password.pdf", Encrypted),
        ("pdf_scanned_invoice.pdf", Scanned),
        ("random.bin", Unsupported),
    ],
)
def test_refusals(parser: Parser, name: str, error: type[SourceError]) -> None:
    """Locked, scanned, foreign and unknown files are refused each in its own way."""
    assert type(read(parser, sample(name))) is error
