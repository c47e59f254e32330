"""INDEX.md: one line per note, in sections; whatever else a person writes there stays."""

import functools
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize.title import one_line
from kb.model.text import escape_line_breaks

SCAFFOLD: Final = (
    "# Index\n\n<!-- One line to a note, kept by kb. Text of your own may stand between. -->\n"
)
_OWN: Final = frozenset(line for line in SCAFFOLD.splitlines() if line)
DESCRIPTION_CHARS_MAX: Final = 160
# A longer line is text, whatever it looks like, so that no line costs more than it is worth.
_LINE_CHARS_MAX: Final = 4_000
_ENTRY: Final = re.compile(
    r"(?P<head>\s{0,8}[-*+] \[)(?P<title>(?:\\.|[^\]\\]){0,1000})\]"
    r"\((?P<path><[^<>]{1,1000}>|[^()\s<>]{1,1000})\)"
    r"(?:\s+[—–:-]+\s+(?P<said>.*?))?\s*"
)
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s+(?P<words>.*?)\s*#*\s*")
_FENCE: Final = re.compile(r"\s{0,3}(?P<mark>`{3,}|~{3,})")


class ListingEntry(Struct, frozen=True, kw_only=True):
    """A line that lists a note."""

    line: int
    path: str
    """Relative to the notebook, with slashes."""
    title: str
    description: str


class Listing:
    """The lines of an INDEX.md. Changes give a new one; what is not understood stays as it is."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"

    @property
    def text(self) -> str:
        """The whole file."""
        return "".join(self._lines)

    @property
    def is_plain(self) -> bool:
        """Whether it has no control characters but the ends of lines and tabs."""
        return not re.search(
            r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", self.text
        )

    def entries(self) -> list[ListingEntry]:
        """The lines that list something of the notebook, in order; none inside a code fence."""
        listed = []
        for number, line in self._outside_fences():
            parts = _parsed(line.rstrip("\r\n"))
            if parts is not None:
                path, title, description = parts
                listed.append(
                    ListingEntry(line=number, path=path, title=title, description=description)
                )
        return listed

    def others(self) -> list[str]:
        """The lines of a person's: neither entries, headings, blank nor kb's own; stripped."""
        listed = {entry.line for entry in self.entries()}
        headings = {number for number, _ in self._headings()}
        return [
            line.strip()
            for number, line in enumerate(self._lines)
            if line.strip() and line.strip() not in _OWN and number not in listed | headings
        ]

    def with_entry(self, path: str, title: str, description: str) -> "Listing":
        """The file with one more entry, at the end of its folder's section.

        That is the section in which most notes of its folder stand, else the one whose heading
        is the folder's name; where there is neither, a new one at the end.
        """
        line = entry_line(path, title, description)
        folder = path.rpartition("/")[0]
        after = self._last_of_folder(folder)
        if after is not None:
            return self._inserted(after + 1, [line])
        heading = self._heading_of(folder)
        if heading is None:
            return self._inserted(len(self._lines), ["", f"## {heading_of(folder)}", line])
        after = self._last_of_section(heading)
        return self._inserted(after + 1, [line])

    def moved(self, paths: Mapping[str, str]) -> "Listing":
        """The file with entries that lead to new paths, by old path; each stays where it is."""
        lines = list(self._lines)
        for entry in self.entries():
            if entry.path in paths:
                match = _ENTRY.match(lines[entry.line])
                assert match is not None
                target = _target(paths[entry.path])
                old = lines[entry.line]
                lines[entry.line] = old[: match.start("path")] + target + old[match.end("path") :]
        return Listing("".join(lines))

    def without(self, paths: Iterable[str]) -> "Listing":
        """The file without the entries of these paths, nor the headings that they leave bare."""
        gone = set(paths)
        dropped = {entry.line for entry in self.entries() if entry.path in gone}
        bare = set(self._headings_over(dropped))
        lines = [line for at, line in enumerate(self._lines) if at not in dropped | bare]
        return Listing("".join(lines))

    def _inserted(self, at: int, new: list[str]) -> "Listing":
        before = list(self._lines[:at])
        if before and not before[-1].endswith(("\n", "\r")):
            before[-1] += self._end
        if new[0] == "" and (not before or not before[-1].strip()):
            new = new[1:]
        added = [line + self._end for line in new]
        return Listing("".join([*before, *added, *self._lines[at:]]))

    def _last_of_folder(self, folder: str) -> int | None:
        """The last entry of this folder, in the section that has the most of them."""
        sections: dict[int, list[int]] = {}
        headings = [number for number, _ in self._headings()]
        for entry in self.entries():
            if entry.path.rpartition("/")[0] == folder:
                over = max((at for at in headings if at < entry.line), default=-1)
                sections.setdefault(over, []).append(entry.line)
        return max(sections.values(), key=len)[-1] if sections else None

    def _heading_of(self, folder: str) -> int | None:
        name = _letters(heading_of(folder))
        return next((at for at, words in self._headings() if _letters(words) == name), None)

    def _last_of_section(self, heading: int) -> int:
        """The last line of a section that is not blank."""
        later = (number for number, _ in self._headings() if number > heading)
        stop = next(later, len(self._lines))
        return max(at for at in range(heading, stop) if at == heading or self._lines[at].strip())

    def _headings_over(self, dropped: set[int]) -> Iterable[int]:
        headings = [number for number, _ in self._headings()]
        for number, start in enumerate(headings):
            stop = headings[number + 1] if number + 1 < len(headings) else len(self._lines)
            below = set(range(start + 1, stop))
            left = [at for at in below - dropped if self._lines[at].strip()]
            if below & dropped and not left:
                yield start

    def _headings(self) -> list[tuple[int, str]]:
        lines = ((at, line) for at, line in self._outside_fences() if "#" in line[:4])
        matches = ((at, _HEADING.fullmatch(line)) for at, line in lines)
        return [(at, match["words"]) for at, match in matches if match]

    def _outside_fences(self) -> Iterable[tuple[int, str]]:
        fence = ""
        for number, line in enumerate(self._lines):
            match = _FENCE.match(line)
            if fence:
                if match and match["mark"].startswith(fence):
                    fence = ""
            elif match:
                fence = match["mark"]
            elif len(line) <= _LINE_CHARS_MAX:
                yield number, line


@functools.lru_cache(maxsize=1 << 15)
def _parsed(line: str) -> tuple[str, str, str] | None:
    """Path, title and description of a line that lists a note. Most lines are read many times."""
    match = _ENTRY.fullmatch(line)
    path = _path_of(match["path"]) if match else None
    if match is None or path is None:
        return None
    return path, re.sub(r"\\(.)", r"\1", match["title"]), match["said"] or ""


def entry_line(path: str, title: str, description: str) -> str:
    """The line that lists a note, without its end."""
    shown = re.sub(r"([\\\[\]])", r"\\\1", one_line(title)) or "untitled"
    text = one_line(description, chars_max=DESCRIPTION_CHARS_MAX)
    return f"- [{shown}]({_target(path)})" + (f" — {text}" if text else "")


def heading_of(folder: str) -> str:
    """How the section of a folder is called where kb makes it."""
    words = " / ".join(part.replace("-", " ").strip() for part in folder.split("/"))
    return words[:1].upper() + words[1:] if words else "Notes"


def _letters(words: str) -> str:
    return re.sub(r"[\W_]+", "", words).casefold()


def _target(path: str) -> str:
    if escape_line_breaks(path) != path:
        # It would make lines of its own.
        return urllib.parse.quote(path)
    return f"<{path}>" if re.search(r"[\s()]", path) else path


def _path_of(target: str) -> str | None:
    """The path in the notebook that a link leads to; None where it leads elsewhere."""
    bare = target[1:-1] if target.startswith("<") else urllib.parse.unquote(target)
    bare = bare.removeprefix("./").partition("#")[0]
    outside = not bare or bare.startswith(("/", "../")) or re.match(r"[A-Za-z][\w+.-]*:", bare)
    return None if outside else bare
