"""Walks a folder in name order, never leaves its root, and skips ignored files."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from kb.intake.canonicalize import parser_table
from kb.intake.sync.ignoring import BadIgnoreFile, Ignoring, ignoring_above, ignoring_in
from kb.model.source import ending_of, is_indexed_mailbox, is_named_in_maildir


class WalkedFile(Struct, frozen=True):
    """A file to ingest. Its path is a string: most files need no more, and a Path takes longer."""

    name: str

    @property
    def path(self) -> Path:
        """The path, made anew each time."""
        return Path(self.name)


class SkippedFile(Struct, frozen=True):
    """A file or folder that was left out, and why; `failed` if it should have been readable."""

    path: Path
    reason: str
    failed: bool = False


def normalize_extensions(extensions: Iterable[str]) -> frozenset[str]:
    """Extensions in lower case without a dot; `*` stands for all.

    None at all stand for those of every format that has a parser, of plugins included.
    """
    given = frozenset(extension.lower().lstrip(".") for extension in extensions)
    return given or frozenset(parser_table().mime_of)


def is_taken(path: str, extensions: frozenset[str]) -> bool:
    """Whether a file is taken: for its ending, as a mail of a Maildir, or as Thunderbird's box."""
    if "*" in extensions or ending_of(path) in extensions:
        return True
    if "eml" in extensions and is_named_in_maildir(path):
        return True
    return "mbox" in extensions and is_indexed_mailbox(path)


def walk(
    root: Path,
    extensions: tuple[str, ...],
    *,
    home: Path | None = None,
    ignoring: bool = False,
) -> Iterator[WalkedFile | SkippedFile]:
    """Yield every file under `root` once, in name order, at any depth.

    Files and folders whose names start with a dot or match a .kbignore (gitignore syntax) are
    omitted. Files with other extensions, symbolic links and special files are yielded as skipped.
    Links are never followed, so nothing outside the root is read. A folder that cannot be listed,
    or whose ignore file cannot be applied, is yielded as failed: its owner may have meant to keep
    its files out. `home` is not entered. With `ignoring`, what git ignores, installed packages and
    lock files are yielded as skipped.
    """
    suffixes = normalize_extensions(extensions)
    # An explicit stack, because folders may be nested deeper than calls can be.
    start: Iterator[WalkedFile | SkippedFile | _Folder] = iter(
        (_Folder(root, ignoring_above(root, by_git=ignoring)),)
    )
    open_folders = [start]
    while open_folders:
        for entry in open_folders[-1]:
            if isinstance(entry, SkippedFile):
                yield entry
            elif isinstance(entry, _Folder):
                if entry.path == home:
                    yield SkippedFile(entry.path, "kb's own home")
                    continue
                open_folders.append(_listing(entry.path, entry.ignoring))
                break
            elif is_taken(entry.name, suffixes):
                yield entry
            else:
                yield SkippedFile(entry.path, _other_extension(entry.name))
        else:
            open_folders.pop()


class _Folder(Struct, frozen=True):
    """A folder to enter, and the rules that apply there by those above it."""

    path: Path
    ignoring: Ignoring


def _listing(folder: Path, outer: Ignoring) -> "Iterator[WalkedFile | SkippedFile | _Folder]":
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
        # In the order of their bytes, which is that of ASCII letters.
        is_ascii = all(entry.name.isascii() for entry in listed)
        listed.sort(key=lambda entry: entry.name if is_ascii else os.fsencode(entry.name))
        ignoring = ignoring_in(folder, [entry.name for entry in listed], outer)
    except OSError as error:
        yield SkippedFile(folder, f"the folder cannot be listed ({error.strerror})", failed=True)
        return
    except BadIgnoreFile as refusal:
        yield SkippedFile(folder, f"left out, because {refusal}", failed=True)
        return
    for entry in listed:
        if not entry.name.startswith("."):
            found = _classified(entry, ignoring)
            if found is not None:
                yield found


def _classified(
    entry: "os.DirEntry[str]", ignoring: Ignoring
) -> "WalkedFile | SkippedFile | _Folder | None":
    """What an entry is; None where it is left out without a word."""
    try:
        is_file = entry.is_file(follow_symlinks=False)
        is_folder = not is_file and entry.is_dir(follow_symlinks=False)
        is_link = not is_file and entry.is_symlink()
    except OSError as error:
        return SkippedFile(Path(entry.path), f"cannot be read ({error.strerror})", failed=True)
    reason = ignoring.reason(entry.path, entry.name, is_folder=is_folder)
    if reason is not None:
        return SkippedFile(Path(entry.path), reason) if reason else None
    if is_file:
        return WalkedFile(entry.path)
    if is_folder:
        return _Folder(Path(entry.path), ignoring)
    if is_link:
        return SkippedFile(Path(entry.path), "a symbolic link; links are not followed")
    return SkippedFile(Path(entry.path), "not a regular file")


def _other_extension(name: str) -> str:
    ending = ending_of(name)
    return f"extension .{ending} is left out; see --ext" if ending else "no extension; see --ext"
