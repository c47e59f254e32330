"""Places a note by rule: by its hint, its tags, or similar notes. Its title names the file."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from kb.errors import SourceError
from kb.intake.canonicalize import CanonicalizeInput, canonicalize
from kb.intake.canonicalize.title import one_line
from kb.knowledge.notebook.listing import DESCRIPTION_CHARS_MAX
from kb.knowledge.notebook.paths import LEVELS_MAX, kebab

DEFAULT_FOLDER: Final = "inbox"
# Cosines of the model; below this, two notes share little more than their language.
_LIKE_MIN: Final = 0.4
_SENTENCE: Final = re.compile(r".+?(?:[.!?…](?=\s|$)|[。！？]|$)")
_MARKS: Final = re.compile(r"^\s*(?:[-*+>]|\d{1,9}[.)])\s+|[*_`]+")


class Summary(Struct, frozen=True, kw_only=True):
    """A note's title and its first sentence."""

    title: str
    description: str


def summary_of(text: str) -> Summary:
    """The title in a note, or else its first line; and the first sentence below it."""
    source = CanonicalizeInput(data=text.encode(), mime="text/markdown", name="-")
    try:
        canonical = canonicalize(source)
    except SourceError:
        return Summary(title="untitled", description="")
    return Summary(title=canonical.title, description=_sentence(canonical.markdown))


def folder_for(
    hint: str | None,
    tags: Sequence[str],
    folders: Sequence[str],
    like: Sequence[tuple[str, float]],
) -> str:
    """The folder of a new note, perhaps a new one.

    In this order: the folder that the hint names, or whose name is in the hint; the folder that a
    tag names; the folder of the most similar notes (`like`: paths with cosines); DEFAULT_FOLDER.
    `folders` are the existing ones.
    """
    return (
        (_by_hint(hint, folders) if hint else None)
        or _by_tags(tags, folders)
        or _by_likeness(like)
        or DEFAULT_FOLDER
    )


def _by_hint(hint: str, folders: Sequence[str]) -> str | None:
    words = kebab(hint).split("-")
    named = [folder for folder in folders if _is_within(folder.split("/")[-1], words)]
    if "/" in hint or len(hint.split()) == 1:
        parts = [kebab(part) for part in hint.split("/") if part.strip(" .")]
        return "/".join(parts[: LEVELS_MAX - 1]) or None
    return max(named, key=len, default=None)


def _is_within(name: str, words: list[str]) -> bool:
    parts = name.casefold().split("-")
    spans = range(len(words) - len(parts) + 1)
    return any(words[at : at + len(parts)] == parts for at in spans)


def _by_tags(tags: Sequence[str], folders: Sequence[str]) -> str | None:
    names = [kebab(tag) for tag in tags]
    existing = (folder for name in names for folder in folders if folder.split("/")[-1] == name)
    return next(existing, None) or next(iter(names), None)


def _by_likeness(like: Iterable[tuple[str, float]]) -> str | None:
    sums: dict[str, float] = {}
    for path, cosine in like:
        folder = path.rpartition("/")[0]
        if folder and cosine >= _LIKE_MIN:
            sums[folder] = sums.get(folder, 0.0) + cosine
    return max(sums, key=lambda folder: (sums[folder], folder), default=None)


def _sentence(markdown: str) -> str:
    """The first sentence of the first line that is neither a heading nor a rule."""
    for line in markdown[:20_000].splitlines():
        bare = _MARKS.sub("", line).strip()
        if bare and not line.lstrip().startswith(("#", "```", "~~~", "<", "|")) and bare[0] != "=":
            match = _SENTENCE.match(bare)
            return one_line(match[0] if match else bare, chars_max=DESCRIPTION_CHARS_MAX)
    return ""
