"""The real command in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import forked_commands
from msgspec import Struct

KB: Final = str(Path(sys.executable).with_name("kb"))
HASHING: Final = ("--cfg", "embed.kind=hashing")
TIMEOUT_S: Final = 120
_SHOW: Final = """
import atexit, sys
from kb_cli.main import main
atexit.register(lambda: print(*sorted({n.partition('.')[0] for n in sys.modules}), file=sys.stderr))
main()
"""


class Ran(Struct, frozen=True, kw_only=True):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


def surroundings(**changes: str | None) -> dict[str, str]:
    """An environment without settings of the person who runs the tests; None takes one away."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KB_")}
    kept |= {"COLUMNS": "100", "TERM": "xterm-256color"}
    kept.pop("NO_COLOR", None)
    kept |= {key: value for key, value in changes.items() if value is not None}
    return {key: value for key, value in kept.items() if key not in changes or changes[key]}


class Home:
    """A home that commands are run on, with the model that needs no loading."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def argv(self, *args: object) -> list[str]:
        """The whole command line."""
        words = [os.fspath(arg) if isinstance(arg, Path) else str(arg) for arg in args]
        return [KB, "--home", str(self.root), *HASHING, *words]

    def run(self, *args: object, stdin: str | bytes = b"", **options: Any) -> Ran:
        """Run a command to its end."""
        return run(self.argv(*args), stdin=stdin, **options)

    def ids(self) -> dict[str, str]:
        """Doc ids by file name."""
        rows = self.run("ls", "--json", "--limit", "0").json["docs"]
        return {Path(row["source"]).name: row["doc_id"] for row in rows}


def run(
    argv: list[Any],
    *,
    stdin: str | bytes = b"",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    **options: Any,
) -> Ran:
    """Run a command line to its end, nothing of it a terminal; `options` are of subprocess."""
    env = env or surroundings()
    given = stdin.encode() if isinstance(stdin, str) else stdin
    words = [os.fsdecode(word) for word in argv]
    if words[0] == KB and not options and forked_commands.can_fork(env):
        done = forked_commands.run(words, env=env, timeout_s=TIMEOUT_S, stdin=given, cwd=cwd)
    else:
        done = subprocess.run(
            argv, input=given, capture_output=True, env=env, cwd=cwd, timeout=TIMEOUT_S, **options
        )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


def accounted(report: dict[str, Any]) -> bool:
    """Whether every source that was scanned has an outcome."""
    names = ("added", "updated", "unchanged", "resurrected", "skipped", "failed")
    return bool(report["scanned"] == sum(report[name] for name in names))


def loaded(*args: str) -> set[str]:
    """Top-level modules that a command has loaded when it ends."""
    ran = run([sys.executable, "-c", _SHOW, *args])
    assert ran.code == 0, ran.err
    return set(ran.err.splitlines()[-1].split())


def record_counts(report: dict[str, Any]) -> dict[str, int]:
    """What is not zero of the records of a report."""
    assert "sources" in report or accounted(report)
    return {name: count for name, count in report["records"].items() if count and name != "scanned"}


def record_rows(home: Home, *options: str) -> dict[str, tuple[str, str]]:
    """Titles and doc ids by what follows the file in the sources of records."""
    listed = home.run("ls", "--json", "--limit", "0", *options).json["docs"]
    parts = [(row["source"].partition("#")[2], row["title"], row["doc_id"]) for row in listed]
    return {key: (title, doc_id) for key, title, doc_id in parts if key}
