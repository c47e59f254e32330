"""A revision of kb, checked out beside this one, whose commands the benchmarks run."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]


class Revision:
    """A revision in a folder of its own, run by this Python; it has settings of its own."""

    def __init__(self, scratch: Path, name: str, revision: str, home: Path) -> None:
        self.name = name
        self.source = scratch / f"source-{name}"
        git("worktree", "add", "--quiet", "--detach", "--force", str(self.source), revision)
        self.cwd = scratch / "cwd"
        self.cwd.mkdir(exist_ok=True)
        # The package of the command line has not always had this name.
        is_named_kb_cli = (self.source / "cli" / "kb_cli").is_dir()
        package = "kb_cli" if is_named_kb_cli else "cli"
        self.kb = (sys.executable, "-c", f"from {package}.main import main; main()")
        # Before what the interpreter has installed.
        path = os.pathsep.join((str(self.source), *[str(self.source / "cli")] * is_named_kb_cli))
        self.env = {**os.environ, "PYTHONPATH": path, "KB_HOME": str(home)}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.env |= {
            f"XDG_{kind}_HOME": str(scratch / "xdg") for kind in ("CONFIG", "DATA", "CACHE")
        }

    def run(self, *argv: str, under: tuple[str, ...] = ()) -> tuple[int, str]:
        """A command's exit code and what it printed, errors after the output."""
        done = subprocess.run(
            [*under, *self.kb, *argv], env=self.env, cwd=self.cwd, capture_output=True, text=True
        )
        return done.returncode, done.stdout or done.stderr

    @contextlib.contextmanager
    def served(self, *options: str) -> Iterator[int]:
        """The port of a server on the home."""
        process = subprocess.Popen(
            [*self.kb, "serve", "--port", "0", "--no-token", *options],
            env=self.env,
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        try:
            match = re.search(r":(\d+)", process.stdout.readline())
            assert match is not None
            yield int(match[1])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def remove(self) -> None:
        """Take the checkout away."""
        git("worktree", "remove", "--force", str(self.source))


def git(*argv: str) -> str:
    """What git prints in this repository; the benchmark ends where it fails."""
    done = subprocess.run(["git", *argv], cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"git {argv[0]}: {done.stderr}")
    return done.stdout.strip()
