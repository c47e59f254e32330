"""Write examples/house/energy-survey.pdf: two pages of text, the same bytes on every run.

    python scripts/make_example_pdf.py [PATH]

The file is put together by hand (PDF 1.4, a standard font, no compression), so it needs no library
and can be read in an editor.
"""

import sys
from pathlib import Path
from typing import Final

TARGET: Final = Path(__file__).resolve().parent.parent / "examples/house/energy-survey.pdf"
TITLE: Final = "Home energy survey, 14 Harbour Row"
PAGES: Final = (
    (
        "Home energy survey, 14 Harbour Row",
        "",
        "Visited on 6 November 2025 by R. Adeyemi. Outside temperature 4 degrees, light wind.",
        "",
        "What was found",
        "",
        "The windows of the front room are single glazed and lose the most. With the blower door",
        "closed the flat changes its air nine times an hour, mostly through the letter box, the",
        "gap under the hall door and the old flue in the bedroom. Smoke from a match held at the",
        "skirting moved in every room but the kitchen.",
        "",
        "The walls are solid brick, 340 millimetres thick, and dry. No mould was seen, but the",
        "corner behind the wardrobe was two degrees colder than the rest of that wall, and the",
        "wardrobe should stand a hand's breadth away from it.",
        "",
        "The radiators are large enough for a lower flow temperature than the 70 degrees that are",
        "set today. The valve in the study does not turn. The hot water tank has a jacket of",
        "50 millimetres, which is enough, and its thermostat was right to within one degree.",
        "",
        "Heating took 14,200 kilowatt hours in the year before the visit, and hot water 2,600.",
        "For a flat of this size and age both figures are a little above the middle.",
    ),
    (
        "What we recommend",
        "",
        "First, mineral wool above the ceiling of the top floor. Today there are 60 millimetres;",
        "lay another 240, across the joists, so that 300 are there in all. Leave the eaves open,",
        "so that the timber stays dry. Cost about 900, saved in four winters.",
        "",
        "Second, brush strips for the hall door and a cover for the letter box. Cost under 60,",
        "saved before the first winter is over. The old flue may be closed with a cap that lets",
        "a little air through.",
        "",
        "Third, set the flow temperature to 55 degrees for a week and see whether anybody notices.",
        "If nobody does, leave it there: every five degrees less save about three percent.",
        "",
        "Secondary glazing for the front room can wait until the frames are painted in 2027.",
        "A heat pump would work here after the first two steps, not before them. The outdoor unit",
        "could stand on the flat roof of the laundry, six metres from the nearest bedroom window;",
        "the cable from the meter is thick enough for one of eight kilowatts.",
        "",
        "Grants",
        "",
        "The council pays a third of the mineral wool, up to 500, if two offers are handed in",
        "before the work begins. Form E7 is at the desk on Cable Street and asks for a photograph",
        "of the joists as they are now. The money comes within eight weeks of the invoice. Brush",
        "strips and covers are not paid for. A loan without interest can be had for the glazing,",
        "over ten years, from the savings bank in the same building.",
    ),
)


def content_of(lines: tuple[str, ...]) -> bytes:
    """The drawing commands of one page: a line of text after another from the top left."""
    shown = [f"({_escaped(line)}) Tj T*" if line else "T*" for line in lines]
    return "\n".join(["BT /F1 11 Tf 15 TL 60 780 Td", *shown, "ET"]).encode("latin-1")


def _escaped(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def document(pages: tuple[tuple[str, ...], ...], title: str) -> bytes:
    """A whole PDF file. Object 1 is the catalogue, 2 the page list, 3 the font, 4 the title."""
    numbers = [5 + 2 * place for place in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        f"<< /Title ({_escaped(title)}) >>".encode("latin-1"),
    ]
    for number, lines in zip(numbers, pages, strict=True):
        drawn = content_of(lines)
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {number + 1} 0 R "
            f"/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        bodies.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
    return _assembled(bodies)


def _assembled(bodies: list[bytes]) -> bytes:
    # The comment of high bytes tells programs that the file is binary.
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets: list[int] = []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\n" % (len(bodies) + 1)
    out += b"startxref\n%d\n%%%%EOF\n" % table
    return bytes(out)


def main() -> None:
    """Write the file where the call says, or to its place in examples/."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_bytes(document(PAGES, TITLE))
    print(target)


if __name__ == "__main__":
    main()
