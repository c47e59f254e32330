"""Build the site of the documentation in build/site/, and say which links lead nowhere.

    python scripts/build_site.py

The site has docs/ and, beside it, the pages in the repository's root; the README is the first page.
It needs no network. Ends with 1 if the generator warns of anything.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
STAGED: Final = ROOT / "build" / "docs"
"""What the generator reads."""
FIRST: Final = "README.md"
BESIDE: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:)([^)#]*)(#[^)]*)?\)")
_FENCE: Final = re.compile(r"(?ms)^(```.*?^```$)")


def main() -> int:
    """Stage the pages, then have them built."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(ROOT / "docs", STAGED, ignore=shutil.ignore_patterns("parts"))
    for name in (FIRST, *BESIDE):
        text = (ROOT / name).read_text("utf-8")
        to = "index.md" if name == FIRST else name
        (STAGED / to).write_text(text.replace("](docs/", "]("), "utf-8")
    for page in STAGED.rglob("*.md"):
        page.write_text(staged(page.read_text("utf-8"), page), "utf-8")
    command = [Path(sys.executable).with_name("zensical"), "build", "--clean", "--strict"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
        print(said.partition("Traceback")[0], file=sys.stderr)
        return 1
    print(f"{len(list(STAGED.rglob('*.md')))} pages in build/site/; open build/site/index.html")
    return 0


def staged(text: str, page: Path) -> str:
    """A page whose links stay in the site; of one that leaves it, the text stays alone."""

    def link(found: re.Match[str]) -> str:
        mark, label, target, anchor = found.groups("")
        inside = (page.parent / target).resolve()
        if target.endswith("README.md"):
            return f"[{label}]({'../' * len(page.relative_to(STAGED).parents[1:])}index.md{anchor})"
        if target.endswith("/") and (first := next(iter(sorted(inside.glob("*.md"))), None)):
            return f"[{label}]({target}{first.name})"
        return found[0] if inside.is_relative_to(STAGED) and _has(inside, target) else mark + label

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def _has(inside: Path, target: str) -> bool:
    # A page that is missing stays linked, so that the generator says so.
    return inside.exists() or target.endswith((".md", ".png", ".svg"))


if __name__ == "__main__":
    sys.exit(main())
