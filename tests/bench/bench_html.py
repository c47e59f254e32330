"""Which words of the HTML files below folders does kb keep, beside plain trafilatura?

No one has marked by hand what the article of each page is, so that this is no F1 of the truth: it
says how much of what trafilatura keeps kb keeps, and how much kb keeps besides. Run it by
`make bench-html DATA=folder`.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean

from kb.errors import SourceError
from kb.intake.canonicalize import html

_MANY = 20


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower().replace("\\", "")))


def by_trafilatura(data: bytes) -> str:
    import trafilatura

    return trafilatura.extract(data, output_format="markdown", include_tables=True) or ""


def main(folders: list[Path]) -> None:
    rows: list[tuple[float, float]] = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.htm*")):
        data = path.read_bytes()
        try:
            ours = words(html.read(data, path.name).markdown)
        except SourceError as error:
            print(f"  {error}")
            continue
        theirs = words(by_trafilatura(data))
        shared = (ours & theirs).total()
        if theirs.total() < _MANY:
            continue
        kept, common = shared / theirs.total(), shared / max(1, ours.total())
        rows.append((kept, common))
        if min(kept, common) < 0.95:
            print(f"  {path.name}: {kept:.3f} of its words, {ours.total()} for {theirs.total()}")
    kept, common = (fmean(column) for column in zip(*rows, strict=True))
    print(
        f"{len(rows)} pages: {kept:.4f} of trafilatura's words; {common:.4f} of kb's are among them"
    )


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
