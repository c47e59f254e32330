"""Which files? A folder is walked in name order, inside its root, past what is to be ignored."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE: Final = ".kbignore"
DEFAULT_EXTENSIONS: Final = ("md", "markdown", "txt", "text", "html", "htm", "xhtml", "pdf")


class Found(Struct, frozen=True):
    """A file to take in."""

    path: Path


class Passed(Struct, frozen=True):
    """A file that was seen and left out, and why; `failed` where it should have been readable."""

    path: Path
    reason: str
    failed: bool = False


def walk(root: Path, extensions: tuple[str, ...]) -> Iterator[Found | Passed]:
    """Yield every file under `root` once, in name order.

    Folders and files whose name starts with a dot, and what a .kbignore (gitignore syntax)
    names, are not seen at all. Files of other extensions, links and what is not a regular file
    are passed over with a reason. Links are never followed, so nothing outside the root is read.
    """
    wanted = frozenset(extension.lower().lstrip(".") for extension in extensions)
    yield from _walk(root, root, wanted, [])


def _walk(
    folder: Path, root: Path, wanted: frozenset[str], ignored: list[tuple[Path, "GitIgnoreSpec"]]
) -> Iterator[Found | Passed]:
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        yield Passed(folder, f"the folder cannot be listed ({error.strerror})", failed=True)
        return
    here = _ignore_spec(folder)
    rules = [*ignored, (folder, here)] if here is not None else ignored
    for entry in listed:
        path = Path(entry.path)
        if entry.name.startswith(".") or _is_ignored(path, rules, entry):
            continue
        if entry.is_symlink():
            yield Passed(path, "a symbolic link; links are not followed")
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(path, root, wanted, rules)
        elif not entry.is_file(follow_symlinks=False):
            yield Passed(path, "not a regular file")
        elif "*" in wanted or path.suffix.lower().lstrip(".") in wanted:
            yield Found(path)
        else:
            yield Passed(path, _other_extension(path))


def _other_extension(path: Path) -> str:
    suffix = path.suffix.lower()
    return f"extension {suffix} is not asked for" if suffix else "no extension; see --ext"


def _ignore_spec(folder: Path) -> "GitIgnoreSpec | None":
    try:
        lines = (folder / IGNORE_FILE).read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _is_ignored(
    path: Path, rules: list[tuple[Path, "GitIgnoreSpec"]], entry: "os.DirEntry[str]"
) -> bool:
    for base, spec in reversed(rules):
        relative = path.relative_to(base).as_posix()
        if entry.is_dir(follow_symlinks=False):
            relative += "/"
        verdict = spec.check_file(relative).include
        if verdict is not None:
            return bool(verdict)
    return False
