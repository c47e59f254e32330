"""Write docs/reference/ from the code: commands, settings, JSON, HTTP, tools and the library.

    python scripts/write_reference.py

With `--check` it writes nothing, and ends with 1 if a page is not what the code says now.
"""

import sys

from reference import cli, documents, errors, http, python, settings, tools
from reference.markdown import OUT, ROOT


def pages() -> dict[str, str]:
    """Every page by its name."""
    makers = (cli, documents, errors, http, python, settings, tools)
    return {name: text for maker in makers for name, text in maker.pages()}


def main() -> int:
    """Write what has changed; 1 if there is any and nothing may be written."""
    said, known = pages(), {path.name for path in OUT.glob("*.md")}
    stale = [
        name
        for name, text in said.items()
        if name not in known or (OUT / name).read_text("utf-8") != text
    ]
    left = sorted(known - said.keys())
    if "--check" in sys.argv:
        for name in (*stale, *left):
            print(f"docs/reference/{name} is not current; run `make reference`", file=sys.stderr)
        return 1 if stale or left else 0
    for name in stale:
        (OUT / name).write_text(said[name], "utf-8")
        print(f"{(OUT / name).relative_to(ROOT)} written")
    for name in left:
        (OUT / name).unlink()
        print(f"docs/reference/{name} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
