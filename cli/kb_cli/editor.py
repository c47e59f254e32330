"""Which program opens a file or a page, and how is it told the line?"""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from kb.errors import KbError
from kb.operations.source_place import SourcePlace

# Editors by how they are told the line. What is not here gets the file alone.
_PLUS_LINE: Final = frozenset(
    (
        *("vi", "vim", "nvim", "gvim", "mvim", "view", "vis", "ex", "kak", "micro"),
        *("emacs", "emacsclient", "nano", "pico", "joe", "jed", "ne", "mg", "gedit", "kate"),
    )
)
_GOTO: Final = frozenset(("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"))
_COLON_LINE: Final = frozenset(("subl", "sublime_text", "hx", "helix", "zed"))


class NoEditor(KbError):
    """No program is known, or there is none of its name, or it failed."""


def editor_words(env: Mapping[str, str]) -> list[str]:
    """The words of VISUAL, else of EDITOR; none where neither is set. Raises NoEditor."""
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(env.get(name, ""))
        except ValueError as error:
            raise NoEditor(f"{name} has an unclosed quote: {env[name]}") from error
        if words:
            return words
    return []


def command_for(place: SourcePlace, env: Mapping[str, str]) -> list[str]:
    """The command that opens a source. Raises NoEditor where there is none."""
    if place.file is not None and place.mime.startswith("text/") and (words := editor_words(env)):
        return [*words, *_at_line(words[0], place.file, place.line)]
    target = place.url or place.file
    assert target is not None
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    if shutil.which(opener, path=env.get("PATH")) is None:
        raise NoEditor(f"no program here opens {target}; set EDITOR for files, or install {opener}")
    return [opener, target]


def _at_line(program: str, file: str, line: int | None) -> list[str]:
    name = PurePath(program).name
    if line is None:
        return [file]
    if name in _PLUS_LINE:
        return [f"+{line}", file]
    if name in _GOTO:
        return ["--goto", f"{file}:{line}"]
    return [f"{file}:{line}"] if name in _COLON_LINE else [file]


def run_program(argv: list[str]) -> None:
    """Run a program on this terminal until it ends. Raises NoEditor where it fails."""
    try:
        code = subprocess.run(argv, check=False).returncode
    except OSError as error:
        raise NoEditor(
            f"{argv[0]} cannot be run ({error.strerror}); set VISUAL or EDITOR"
        ) from error
    if code:
        raise NoEditor(f"{argv[0]} ended with exit code {code}")
