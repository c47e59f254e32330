"""The shell examples of a page: what it tells a reader to type, and what it shows them."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
_BLOCK: Final = re.compile(
    r"(?ms)^(?:<!-- not run: (?P<reason>.*?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$"
)
SHELL: Final = ("console", "sh", "bash")
# No id has ten characters, as a short commit has, which may begin like one.
_ID: Final = re.compile(r"\b([cdjst])(?:[0-9a-f]{8}|[0-9a-f]{10,})\b")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:\d\d)?)?")
_SCORE: Final = re.compile(r"\b[01]\.\d{3}\b")
_COMMIT: Final = re.compile(r"\b[0-9a-f]{10}\b")
_BACKUP: Final = re.compile(r"\b\d{8}T\d{6}Z-[0-9a-f]{6}\b")
_SIZE: Final = re.compile(r"\b[\d.]+ [KM]B\b")
REST: Final = "…"
"""A line of this alone stands for any lines."""


class Example(NamedTuple):
    """A command, and the lines that are shown below it."""

    command: str
    shown: str


class Block(NamedTuple):
    """The examples of one fence; `reason` says why they are not run."""

    examples: tuple[Example, ...]
    reason: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The fences of a page that show a shell, in their order."""
    for found in _BLOCK.finditer(page.read_text("utf-8")):
        if found["kind"] in SHELL:
            yield Block(tuple(_examples(found["text"])), found["reason"])


def _examples(text: str) -> Iterator[Example]:
    parts = re.split(r"(?m)^\$ ", text)
    assert not parts[0].strip(), f"a line before the first command: {parts[0]!r}"
    for part in parts[1:]:
        lines = part.splitlines()
        end = 1
        while lines[end - 1].endswith("\\") or _in_heredoc(lines[:end]):
            end += 1
        yield Example("\n".join(lines[:end]), "\n".join(lines[end:]).strip("\n"))


def _in_heredoc(lines: list[str]) -> bool:
    opened = re.search(r"<<'?(\w+)'?", lines[0])
    return opened is not None and opened[1] not in lines[1:]


class Shell:
    """A reader's shell in a fresh home folder, who stays where they changed to."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home
        bin_folder = Path(sys.executable).parent
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
        kept = {name: value for name, value in kept.items() if not name.startswith("XDG_")}
        self._environment = kept | {
            "HOME": str(home),
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
            "LC_ALL": "C.UTF-8",
        }
        self._said_folder = home / ".said-folder"

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of a command and all that it says, with the home folder as /home/ada."""
        script = f"{command}\ncode=$?; pwd > {self._said_folder}; exit $code"
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-c", script],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=60,
        )
        self.folder = Path(self._said_folder.read_text("utf-8").strip())
        return done.returncode, done.stdout.replace(str(self.home), "/home/ada").strip("\n")


def masked(text: str) -> str:
    """A text without what differs from run to run: ids, times, scores and the ends of lines."""
    text = _SIZE.sub("SIZE", _BACKUP.sub("BACKUP", text))
    text = _TIME.sub("TIME", _ID.sub(r"\g<1>ID", text))
    text = _COMMIT.sub("COMMIT", _SCORE.sub("SCORE", text))
    # Columns are as wide as the longest path in them.
    return "\n".join(re.sub(r" +", " ", line.rstrip()) for line in text.splitlines())


def fits(shown: str, printed: str) -> bool:
    """Whether a command has printed what a page shows."""
    lines = [re.escape(line) for line in masked(shown).splitlines()]
    pattern = "\n".join(".*" if line == re.escape(REST) else line for line in lines)
    return re.fullmatch(pattern, masked(printed), re.DOTALL) is not None
