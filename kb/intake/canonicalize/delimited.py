"""What does a table in plain text say? Its rows, with their header again for each block."""

import csv
import io
from typing import Final

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import BLOCK_ROWS, finish, table
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.model.text import Canonical

ROWS_MAX: Final = 500_000
_SAMPLE_CHARS: Final = 65_536
_DELIMITERS: Final = (",", ";", "\t", "|")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The rows as markdown tables of `BLOCK_ROWS` rows, each below the header; cells as shown.

    Raises:
        Unparsable: it has more than `ROWS_MAX` rows, or a field of over 131,072 characters.
        EmptySource: no cell has text.
    """
    decoded, warning = decode_text(data, (charset,) if charset else ())
    text = clean_text(decoded).removeprefix("\ufeff")
    sample = text[:_SAMPLE_CHARS]
    line = sample.lstrip().partition("\n")[0]
    mark = "\t" if name.lower().endswith(".tsv") else max(_DELIMITERS, key=line.count)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark):
            rows.append(row)
            if len(rows) > ROWS_MAX:
                raise Unparsable(f"it has more than {ROWS_MAX} rows; split it", source=name)
    except csv.Error:
        raise Unparsable("its quotes do not close; mend it and add it again", source=name) from None
    mime = "text/tab-separated-values" if mark == "\t" else "text/csv"
    blocks = [table(rows, block_rows=BLOCK_ROWS)]
    return finish(blocks, name, mime, warnings=[warning] if warning else [], is_titled=False)
