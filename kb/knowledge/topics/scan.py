"""Finds the subjects in a folder: every file below it is one, and its path becomes its slug."""

import os
import stat
import unicodedata
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Final, Literal, assert_never

from msgspec import Struct

from kb.errors import TooLarge, Unreadable

_Kind = Literal["link", "folder", "file", "other"]
_IRREGULAR: Final = "not a regular file"
# Characters that turn the direction of the text after them, or end the line.
_TURNING: Final = frozenset("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Subject(Struct, frozen=True, kw_only=True):
    """A file below a topic's folder, or something else in place of a file."""

    slug: str
    path: str
    """The path relative to the folder, as on the disk."""
    is_hidden: bool
    """Whether a part of its path starts with a dot."""
    problem: str | None = None
    """Why it cannot be learned, in words."""
    failed: bool = False
    """Whether the problem is a fault that somebody should fix."""


def scan(folder: Path, entries_max: int) -> tuple[Subject, ...]:
    """Every subject, by slug. Two files with one slug become one subject with a problem.

    Links to files inside the folder are followed; other links are not, nor are links to folders. No
    file is opened. Raises Unreadable if a folder cannot be listed, and TooLarge if it has more than
    `entries_max` entries.
    """
    subjects = sorted(_walk(folder, entries_max), key=lambda subject: (subject.slug, subject.path))
    groups = (
        (slug, list(group)) for slug, group in groupby(subjects, key=lambda subject: subject.slug)
    )
    return tuple(group[0] if len(group) == 1 else _collision(slug, group) for slug, group in groups)


def _collision(slug: str, group: list[Subject]) -> Subject:
    paths = " and ".join(_shown(subject.path) for subject in group)
    return Subject(
        slug=slug,
        path=group[0].path,
        is_hidden=all(subject.is_hidden for subject in group),
        problem=f"several files have this slug: {paths}; rename all but one",
        failed=True,
    )


def _walk(folder: Path, entries_max: int) -> Iterator[Subject]:
    top = os.path.realpath(folder)
    # An explicit stack, because folders may be nested deeper than calls can be.
    waiting = [""]
    left = entries_max
    while waiting:
        inner = waiting.pop()
        try:
            with os.scandir(os.path.join(top, inner)) as entries:
                listed = [(entry.name, _kind(entry)) for entry in islice(entries, left + 1)]
        except OSError as error:
            problem = f"the folder cannot be listed ({error.strerror})"
            if not inner:
                raise Unreadable(problem, source=str(folder)) from error
            yield subject_at(inner, problem, is_folder=True, failed=True)
            continue
        left -= len(listed)
        if left < 0:
            raise TooLarge(f"over {entries_max:,} files and folders", source=str(folder))
        for name, kind in listed:
            path = f"{inner}/{name}" if inner else name
            match kind:
                case "folder":
                    waiting.append(path)
                case "file":
                    yield subject_at(path)
                case "link":
                    yield _link(top, path)
                case "other":
                    yield subject_at(path, _IRREGULAR)
                case _:
                    assert_never(kind)


def _kind(entry: "os.DirEntry[str]") -> _Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _link(top: str, path: str) -> Subject:
    real = os.path.realpath(os.path.join(top, path))
    try:
        mode = os.stat(real).st_mode
    except OSError:
        return subject_at(path, "a link that leads nowhere")
    is_folder = stat.S_ISDIR(mode)
    if not Path(real).is_relative_to(top):
        problem = "a link that leads out of the topic's folder; such links are not followed"
    elif is_folder:
        problem = "a link to a folder; such links are not followed"
    else:
        return subject_at(path, None if stat.S_ISREG(mode) else _IRREGULAR)
    return subject_at(path, problem, is_folder=is_folder)


def subject_at(
    path: str, problem: str | None = None, *, is_folder: bool = False, failed: bool = False
) -> Subject:
    """The subject of a relative path; a name that cannot be written is a problem. Reads nothing."""
    if not _is_plain(path):
        problem = problem or "its name cannot be written; rename the file"
    return Subject(
        slug=slug_of(_shown(path), is_folder=is_folder),
        path=path,
        is_hidden=any(part.startswith(".") for part in path.split("/")),
        problem=problem,
        failed=failed,
    )


def slug_of(path: str, *, is_folder: bool = False) -> str:
    """A relative path without leading dots and without the extension, in composed characters.

    A name that is all dots, or all extension, is kept as it is.
    """
    *above, name = (part.removeprefix(".") or part for part in path.split("/"))
    if not is_folder:
        name = _halves(name)[0]
    return composed("/".join((*above, name)))


def extension_of(path: str) -> str:
    """The extension, lower-case and without its dot; empty if there is none."""
    return _halves(path.rpartition("/")[2].removeprefix("."))[1].lower()


def _halves(name: str) -> tuple[str, str]:
    stem, _, extension = name.rpartition(".")
    return (stem, extension) if stem and extension else (name, "")


def composed(text: str) -> str:
    """One form for names that look alike: some systems write an accent as a separate character."""
    return unicodedata.normalize("NFC", text)


def _is_plain(text: str) -> bool:
    return (text.isascii() and text.isprintable()) or not any(map(_is_driving, text))


def _is_driving(char: str) -> bool:
    return char in _TURNING or unicodedata.category(char) in ("Cc", "Cs")


def _shown(path: str) -> str:
    if _is_plain(path):
        return path
    return "".join(
        char.encode("unicode_escape").decode() if _is_driving(char) else char for char in path
    )
