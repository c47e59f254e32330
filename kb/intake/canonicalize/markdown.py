"""What does a markdown file say? Itself, less its front matter."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from kb.errors import EmptySource
from kb.intake.canonicalize.decode import clean_text, decode_text, has_text
from kb.intake.canonicalize.frontmatter import split_front_matter, stated_at_the_top
from kb.intake.canonicalize.title import fallback_title, has_name, plain_heading
from kb.intake.canonicalize.vault import inline_tags, merged_tags, without_comments
from kb.model.text import Canonical

# A first heading further down than this names a part, not the whole.
_HEADING_WINDOW_CHARS: Final = 65_536
_LAST_LINE_CHARS: Final = 32
_JOPLIN: Final = re.compile(r"\ntype_: [0-9]{1,2}\n*\Z")
_ATX: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]+(.*))?$")
_ATX_CLOSE: Final = re.compile(r"(?:^|[ \t])#+$")
_ATTRIBUTES: Final = re.compile(r"[ \t]\{[^{}]{0,200}\}$")
_SETEXT: Final = re.compile(r" {0,3}(?:=+|-+)$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
# What stands above the title in many files: markup, comments, images, badges and tags.
_DECORATION: Final = re.compile(r"\s*(?:<|--+>|%%|\[?!\[|(?:#[^\s#]+\s*)+$)")
# Lines that no setext heading can be made of: lists, quotes, tables, code, rules, markup.
_NOT_PARAGRAPH: Final = re.compile(r"(?: {4}|\t| {0,3}(?:[-+*>|<]|\d{1,9}[.)][ \t]|={3,}$))")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The markdown with tags and date of its front matter, and a title.

    The title is that of the front matter, else a first-level heading that opens the text, else the
    file's name: a later heading names a part.

    Front matter (YAML between `---` lines, TOML between `+++` lines) is taken off; where it can
    not be read it stays in the text, with a warning. Without it, lines as `Date: 2026-03-01` at the
    top tell the same. Comments between `%%` leave blank lines.
    Everything else stands as written. Tags are those of the front matter and `#tags` in the text.
    A note that Joplin exported has its title in its first line, and facts in its last ones.

    Raises:
        EmptySource: there is no text, or nothing but front matter.
        NotWritten: Joplin keeps it about notes.
    """
    decoded, warning = decode_text(data, (charset,) if charset else ())
    clean = clean_text(decoded)
    if _JOPLIN.search(clean[-_LAST_LINE_CHARS:]):
        # Imported late: most notes are of other programs.
        from kb.intake.canonicalize.joplin import item_of, read_note

        if (item := item_of(clean)) is not None:
            return read_note(item, name)
    front, body = split_front_matter(clean)
    if not front.found:
        stated = stated_at_the_top(body)
        front = structs.replace(
            stated, found=False, warnings=front.warnings, left_chars=front.left_chars
        )
    front_lines = clean.count("\n") - body.count("\n")
    body = without_comments(body).rstrip("\n") + "\n"
    if not has_text(body):
        detail = (
            "there is nothing below its front matter" if front.found else "there is no text in it"
        )
        raise EmptySource(detail, source=name)
    warnings = (warning, *front.warnings) if warning else front.warnings
    return Canonical(
        markdown=body,
        title=front.title or _title(body[front.left_chars :], name),
        mime="text/markdown",
        tags=merged_tags(front.tags, inline_tags(body)),
        aliases=front.aliases,
        date=front.date,
        created=front.created,
        modified=front.modified,
        front_lines=front_lines,
        warnings=warnings,
    )


def _title(text: str, name: str) -> str:
    if has_name(name):
        return opening_heading(text) or fallback_title(name, text)
    return first_heading(text) or fallback_title(name, text)


def opening_heading(text: str) -> str:
    """Words of a first-level heading with only pictures, markup and tags before it, or empty."""
    paragraph: list[str] = []
    for line in _lines(text[:_HEADING_WINDOW_CHARS]):
        if _is_level_one(line, paragraph):
            return _heading(line, paragraph)
        if paragraph:
            return ""
        if line.strip() and not _DECORATION.match(line):
            paragraph = [line]
    return ""


def _is_level_one(line: str, paragraph: list[str]) -> bool:
    if paragraph:
        return line.lstrip().startswith("=") and _SETEXT.match(line.rstrip()) is not None
    return re.match(r" {0,3}#[ \t]", line) is not None


def first_heading(text: str) -> str:
    """Words of the first ATX or setext heading outside code fences; empty if there is none."""
    fence = ""
    paragraph: list[str] = []
    for line in _lines(text[:_HEADING_WINDOW_CHARS]):
        if fence:
            if line.strip(" \t").startswith(fence) and not line.strip(" \t" + fence[0]):
                fence = ""
            continue
        if (opened := _FENCE.match(line)) and not (opened[1][0] == "`" and "`" in opened[2]):
            fence, paragraph = opened[1], []
            continue
        if heading := _heading(line, paragraph):
            return heading
        if not line.strip() or _NOT_PARAGRAPH.match(line):
            paragraph = []
        else:
            paragraph.append(line)
    return ""


def _heading(line: str, paragraph: list[str]) -> str:
    bare = line.rstrip()
    if atx := _ATX.match(bare):
        words = _ATX_CLOSE.sub("", atx[1] or "").rstrip()
        return plain_heading(_ATTRIBUTES.sub("", words))
    if paragraph and _SETEXT.match(bare):
        return plain_heading(" ".join(paragraph))
    return ""


def _lines(text: str) -> Iterator[str]:
    """One line at a time, since the first is nearly always the one that is looked for."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1
