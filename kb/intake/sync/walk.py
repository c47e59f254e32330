"""Walks a folder in name order, never leaves its root, and skips ignored files."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.intake.canonicalize import parser_table

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE: Final = ".kbignore"
_IGNORE_BYTES_MAX: Final = 1 << 20

# The rules of each folder, outermost first.
_Rules = tuple[tuple[Path, "GitIgnoreSpec"], ...]


class WalkedFile(Struct, frozen=True):
    """A file to ingest."""

    path: Path


class SkippedFile(Struct, frozen=True):
    """A file or folder that was left out, and why; `failed` if it should have been readable."""

    path: Path
    reason: str
    failed: bool = False


class _BadIgnoreFile(Exception):
    """A folder's .kbignore cannot be applied."""


def normalize_extensions(extensions: Iterable[str]) -> frozenset[str]:
    """Extensions in lower case without a dot; `*` stands for all.

    None at all stand for those of every format that has a parser, of plugins included.
    """
    given = frozenset(extension.lower().lstrip(".") for extension in extensions)
    return given or frozenset(parser_table().mime_of)


def walk(
    root: Path, extensions: tuple[str, ...], *, home: Path | None = None
) -> Iterator[WalkedFile | SkippedFile]:
    """Yield every file under `root` once, in name order, at any depth.

    Files and folders whose names start with a dot or match a .kbignore (gitignore syntax) are
    omitted. Files with other extensions, symbolic links and special files are yielded as skipped.
    Links are never followed, so nothing outside the root is read. A folder that cannot be listed,
    or whose .kbignore cannot be applied, is yielded as failed: its owner may have meant to keep
    its files out. `home` is not entered.
    """
    suffixes = normalize_extensions(extensions)
    # An explicit stack, because folders may be nested deeper than calls can be.
    start: Iterator[WalkedFile | SkippedFile | _Folder] = iter((_Folder(root, ()),))
    open_folders = [start]
    while open_folders:
        for entry in open_folders[-1]:
            if isinstance(entry, SkippedFile):
                yield entry
            elif entry.path == home:
                yield SkippedFile(entry.path, "kb's own home")
            elif isinstance(entry, _Folder):
                open_folders.append(_listing(entry.path, entry.rules))
                break
            elif "*" in suffixes or _extension(entry.path) in suffixes:
                yield entry
            else:
                yield SkippedFile(entry.path, _other_extension(entry.path))
        else:
            open_folders.pop()


class _Folder(Struct, frozen=True):
    """A folder to enter, and the rules that apply in it."""

    path: Path
    rules: _Rules


def _listing(folder: Path, outer: _Rules) -> "Iterator[WalkedFile | SkippedFile | _Folder]":
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        own_rules = _ignore_spec(folder, listed)
    except OSError as error:
        yield SkippedFile(folder, f"the folder cannot be listed ({error.strerror})", failed=True)
        return
    except _BadIgnoreFile as refusal:
        yield SkippedFile(folder, f"left out, because its {IGNORE_FILE} {refusal}", failed=True)
        return
    rules = (*outer, (folder, own_rules)) if own_rules is not None else outer
    for entry in listed:
        if not entry.name.startswith("."):
            yield from _classify(entry, rules)


def _classify(
    entry: "os.DirEntry[str]", rules: _Rules
) -> "Iterator[WalkedFile | SkippedFile | _Folder]":
    path = Path(entry.path)
    try:
        is_link = entry.is_symlink()
        is_folder = entry.is_dir(follow_symlinks=False)
        is_file = entry.is_file(follow_symlinks=False)
    except OSError as error:
        yield SkippedFile(path, f"cannot be read ({error.strerror})", failed=True)
        return
    if rules and _is_ignored(path, rules, is_folder=is_folder):
        return
    if is_link:
        yield SkippedFile(path, "a symbolic link; links are not followed")
    elif is_folder:
        yield _Folder(path, rules)
    elif is_file:
        yield WalkedFile(path)
    else:
        yield SkippedFile(path, "not a regular file")


def _extension(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


def _other_extension(path: Path) -> str:
    suffix = path.suffix.lower()
    return f"extension {suffix} is left out; see --ext" if suffix else "no extension; see --ext"


def _ignore_spec(folder: Path, listed: "list[os.DirEntry[str]]") -> "GitIgnoreSpec | None":
    entry = next((entry for entry in listed if entry.name == IGNORE_FILE), None)
    if entry is None:
        return None
    try:
        # Opening a FIFO would block, and a link may lead outside.
        if not entry.is_file(follow_symlinks=False):
            raise _BadIgnoreFile("is not a regular file")
        if entry.stat().st_size > _IGNORE_BYTES_MAX:
            raise _BadIgnoreFile(f"is over {_IGNORE_BYTES_MAX:,} bytes")
        lines = (folder / IGNORE_FILE).read_text("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        raise _BadIgnoreFile(f"cannot be read ({error.strerror})") from error
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise _BadIgnoreFile(f"has a line that is not gitignore syntax ({error})") from error


def _is_ignored(path: Path, rules: _Rules, *, is_folder: bool) -> bool:
    for base, spec in reversed(rules):
        relative = path.relative_to(base).as_posix() + ("/" if is_folder else "")
        verdict = spec.check_file(relative).include
        if verdict is not None:
            return bool(verdict)
    return False
