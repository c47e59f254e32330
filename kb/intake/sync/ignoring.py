"""Which files of a folder are left out? What ignore files name, and what no person wrote."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

KB_IGNORE: Final = ".kbignore"
_GIT_IGNORE: Final = ".gitignore"
IGNORE_FILES: Final = (KB_IGNORE, _GIT_IGNORE)
_GIT: Final = ".git"
_IGNORE_BYTES_MAX: Final = 1 << 20
_POINTER_BYTES_MAX: Final = 4_096

BY_GIT: Final = "git ignores it; see --no-ignore"
_LOCK_FILE: Final = "a lock file; see --no-ignore"
_INSTALLED: Final = "a folder of installed packages; see --no-ignore"
_LOCK_FILES: Final = frozenset(
    (
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
        *("poetry.lock", "uv.lock", "pipfile.lock", "pdm.lock", "cargo.lock", "gemfile.lock"),
        *("composer.lock", "go.sum", "flake.lock", "packages.lock.json", "mix.lock", "deno.lock"),
        *("podfile.lock", "pubspec.lock", "gradle.lockfile", ".terraform.lock.hcl"),
    )
)
_PAGE_PARTS: Final = "the parts of a saved page; see --no-ignore"
# What browsers call the folder beside a page, by its name.
_PARTS_MARKS: Final = ("_files", "-Dateien", "_fichiers", "_archivos", "_bestanden", "_file")
_PAGE_ENDINGS: Final = (".html", ".htm", ".xhtml")
# The library's name for the slash behind a folder that a pattern matches.
_FOLDER_MARK: Final = "ps_d"
_PACKAGE_FOLDERS: Final = frozenset(("node_modules", "bower_components", "__pycache__"))


class BadIgnoreFile(Exception):
    """A folder's ignore file cannot be applied; `name` is the file's."""

    def __init__(self, name: str, problem: str) -> None:
        """Keep both."""
        super().__init__(f"its {name} {problem}")


class Rules(Struct, frozen=True):
    """The patterns of one ignore file, and the folder that they are relative to."""

    base: str
    """With a slash at its end."""
    spec: "GitIgnoreSpec"
    is_git: bool
    """Whether git has the same rules."""


class Ignoring(Struct, frozen=True):
    """The rules that apply in a folder, the outermost first."""

    by_git: bool
    """Whether what git ignores, and what is never a person's text, is left out."""
    in_git: bool = False
    """Whether the folder is in a git work tree."""
    rules: tuple[Rules, ...] = ()

    def reason(self, path: str, name: str, *, is_folder: bool) -> str | None:
        """Why an entry is left out: empty without a word, None where it is taken."""
        for rule in reversed(self.rules):
            relative = path[len(rule.base) :] + ("/" if is_folder else "")
            verdict = _verdict(rule.spec, relative)
            if verdict is not None:
                if not verdict:
                    break
                return BY_GIT if rule.is_git else ""
        if not self.by_git:
            return None
        if is_folder:
            is_installed = name in _PACKAGE_FOLDERS or _is_virtual_environment(path)
            is_of_page = name.endswith(_PARTS_MARKS) and _is_beside_page(path)
            return _INSTALLED if is_installed else _PAGE_PARTS if is_of_page else None
        return _LOCK_FILE if name.lower() in _LOCK_FILES else None


def _verdict(spec: "GitIgnoreSpec", relative: str) -> bool | None:
    """Whether an entry is ignored by its own path; None if no pattern says anything of it.

    A pattern of a folder above it says nothing, as for git: what is in an ignored folder is not
    asked, and `!src/a` takes back `src/a`, not `src/a/a`.
    """
    for pattern in reversed(spec.patterns):
        found = pattern.regex.match(relative) if pattern.regex else None
        if found is None:
            continue
        slash = found.end(_FOLDER_MARK) if found.groupdict().get(_FOLDER_MARK) else len(relative)
        if slash == len(relative):
            return bool(pattern.include)
    return None


def ignoring_above(root: Path, *, by_git: bool) -> Ignoring:
    """The rules that apply in a folder by those above it, up to the top of its git work tree.

    A folder that is ignored itself was named by a person, so that nothing above it counts. Files
    above it that cannot be applied do not count either.
    """
    outside = Ignoring(by_git=by_git)
    if not by_git:
        return outside
    top = next((up for up in root.parents if os.path.lexists(up / _GIT)), None)
    if top is None or os.path.lexists(root / _GIT):
        return outside
    ignoring = outside
    between = [up for up in reversed(root.parents) if up == top or top in up.parents]
    try:
        for folder in between:
            ignoring = ignoring_in(folder, os.listdir(folder), ignoring, kb_ignore=False)
    except (OSError, BadIgnoreFile):
        return outside
    for path in (*between[1:], root):
        if ignoring.reason(os.fspath(path), path.name, is_folder=True) is not None:
            return Ignoring(by_git=by_git, in_git=True)
    return ignoring


def ignoring_in(
    folder: Path, names: Sequence[str], outer: Ignoring, *, kb_ignore: bool = True
) -> Ignoring:
    """The rules in a folder with entries of these names. Raises BadIgnoreFile and OSError."""
    rules = list(outer.rules)
    in_git = outer.in_git
    if outer.by_git and _GIT in names:
        # A work tree in a work tree is one of its own.
        in_git = True
        rules = [rule for rule in rules if not rule.is_git]
        exclude = _exclude_file(folder)
        if exclude is not None:
            rules += _rules_of(folder, exclude, is_git=True)
    if in_git and _GIT_IGNORE in names:
        rules += _rules_of(folder, folder / _GIT_IGNORE, is_git=True)
    if kb_ignore and KB_IGNORE in names:
        rules += _rules_of(folder, folder / KB_IGNORE, is_git=False)
    if len(rules) == len(outer.rules) and in_git == outer.in_git:
        return outer
    return Ignoring(by_git=outer.by_git, in_git=in_git, rules=tuple(rules))


def _rules_of(base: Path, file: Path, *, is_git: bool) -> list[Rules]:
    try:
        # Opening a FIFO would block, and a link may lead outside.
        if file.is_symlink() or not file.is_file():
            raise BadIgnoreFile(file.name, "is not a regular file")
        if file.stat().st_size > _IGNORE_BYTES_MAX:
            raise BadIgnoreFile(file.name, f"is over {_IGNORE_BYTES_MAX:,} bytes")
        lines = file.read_text("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        raise BadIgnoreFile(file.name, f"cannot be read ({error.strerror})") from error
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines(map(_of_what_is_inside, lines))
    except ValueError as error:
        problem = f"has a line that is not gitignore syntax ({error})"
        raise BadIgnoreFile(file.name, problem) from error
    return [Rules(base=os.fspath(base).rstrip("/") + "/", spec=spec, is_git=is_git)]


def _exclude_file(top: Path) -> Path | None:
    """The exclude file of the repository of a work tree, where there is one."""
    git = top / _GIT
    try:
        if not git.is_dir():
            # Of a linked work tree or a submodule it is a file that names the folder.
            pointer = git.read_bytes()[:_POINTER_BYTES_MAX].decode("utf-8", "surrogateescape")
            git = top / pointer.removeprefix("gitdir:").strip()
            common = git / "commondir"
            if common.is_file():
                git = git / common.read_text("utf-8", "surrogateescape").strip()
    except (OSError, ValueError):
        return None
    exclude = git / "info" / "exclude"
    return exclude if exclude.is_file() and not exclude.is_symlink() else None


def _is_beside_page(path: str) -> bool:
    """Whether the page that a folder holds the parts of lies beside it."""
    stems = (path.removesuffix(mark) for mark in _PARTS_MARKS if path.endswith(mark))
    return any(os.path.lexists(stem + ending) for stem in stems for ending in _PAGE_ENDINGS)


def _is_virtual_environment(path: str) -> bool:
    return os.path.lexists(os.path.join(path, "pyvenv.cfg"))


def _of_what_is_inside(line: str) -> str:
    """A pattern such as `a/**` in a form that does not match the folder `a` itself."""
    pattern = line.rstrip(" ")
    return f"{pattern}/*" if pattern.endswith("/**") else line
