"""A home that processes are killed over: the real command outside, an oracle's questions inside.

The oracle knows what was written to the source files and what was acknowledged, and asks the home
through the same commands as a person would.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import forked_commands
from click.testing import CliRunner
from kb_cli.main import kb
from msgspec import Struct
from untrusted_homes import trust_home

from kb.errors import KbError
from kb.store.content.database import local_folder

KB: Final = Path(sys.executable).with_name("kb")
CFG: Final = ("embed.kind=hashing", "compact.tombstone_days=0")
DEADLINE_S: Final = 120.0


class Called(Struct, frozen=True, kw_only=True):
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Rig:
    """One home under `root`, and the folder of sources that it takes in (default: beside it)."""

    def __init__(self, root: Path, sources: Path | None = None, cfg: Iterable[str] = CFG) -> None:
        self.root = root
        named = root / "address"
        # A home in a database is meant by this machine's folder for it, as by its address.
        self.home = local_folder(named.read_text()) if named.is_file() else root / "home"
        self.sources = sources or root / "src"
        self.hits_log = root / "failpoints"
        self.cfg = tuple(cfg)
        self.sources.mkdir(parents=True, exist_ok=True)

    def env(self) -> dict[str, str]:
        """The environment of every command: nothing of the person's own is read or written."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "XDG_"))}
        # That of the tests: threads that call a command here see the same as a process does.
        data = os.environ["XDG_DATA_HOME"]
        return {**kept, "HOME": str(self.root), "XDG_DATA_HOME": data, "COLUMNS": "100"}

    def args(self, *args: object, cfg: Iterable[str] = ()) -> list[str]:
        options = [part for said in (*self.cfg, *cfg) for part in ("--cfg", said)]
        return ["--home", str(self.home), *options, *map(str, args)]

    def start(
        self,
        *args: object,
        armed: str = "",
        cfg: Iterable[str] = (),
        under: Iterable[str] = (),
        **env: str,
    ) -> "subprocess.Popen[str]":
        """The real command in a process of its own; what failpoints it hits goes to `hits_log`.

        `under` is a command line that runs the one behind it.
        """
        return subprocess.Popen(
            [*under, str(KB), *self.args(*args, cfg=cfg)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._armed(armed, env),
        )

    def run(
        self,
        *args: object,
        armed: str = "",
        cfg: Iterable[str] = (),
        under: Iterable[str] = (),
        **env: str,
    ) -> Called:
        """The real command, to its end, in a process of its own."""
        if under or not forked_commands.can_fork(self.env() | env):
            with self.start(*args, armed=armed, cfg=cfg, under=under, **env) as process:
                return ended(process)
        argv = [str(KB), *self.args(*args, cfg=cfg)]
        done = forked_commands.run(argv, env=self._armed(armed, env), timeout_s=DEADLINE_S)
        return Called(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def _armed(self, armed: str, more: dict[str, str]) -> dict[str, str]:
        said = {"KB_FAILPOINTS": armed, "KB_FAILPOINTS_LOG": str(self.hits_log)}
        return {**self.env(), **said, **more}

    def call(self, *args: object, cfg: Iterable[str] = ()) -> Called:
        """The command in this process, which costs no start; never armed."""
        with _restored():
            result = CliRunner(env=self.env()).invoke(kb, self.args(*args, cfg=cfg), obj={})
        code, err = result.exit_code, result.stderr
        if isinstance(result.exception, KbError):
            code, err = result.exception.exit_code, err + f"kb: {result.exception}\n"
        elif result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Called(code=code, out=result.stdout, err=err)

    def copied(self, root: Path, cfg: Iterable[str] = ()) -> "Rig":
        """The home as it is now, elsewhere, over the same sources, with `cfg` besides."""
        shutil.copytree(self.home, root / "home", symlinks=True)
        copy = Rig(root, self.sources, (*self.cfg, *cfg))
        copy.trust()
        return copy

    def trust(self) -> None:
        """Let the home count, which was copied, or made without a command."""
        trust_home(self.home, Path(os.environ["XDG_DATA_HOME"]))

    def write(self, files: dict[str, str]) -> None:
        """Put source files in place, each whole at once, as editors do."""
        for name, text in files.items():
            path = self.sources / name
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            beside.write_text(text, "utf-8")
            beside.replace(path)

    def hit(self) -> list[str]:
        """The failpoints that commands have hit, in order."""
        return self.hits_log.read_text("ascii").split() if self.hits_log.exists() else []

    def check(self) -> None:
        """Everything is whole; waiting work is no finding."""
        checked = self.call("check", "--json")
        assert (checked.json["findings"], checked.code) == ([], 0), checked.out

    def drain(self, *options: str) -> None:
        """A worker finds an end, and nothing failed for good."""
        drained = self.call("worker", "--drain", *options)
        assert drained.code == 0, drained
        assert self.stats()["jobs"] == {"ready": 0, "running": 0, "failed": 0}

    def stats(self) -> Any:
        said = self.call("stats", "--json")
        assert said.code == 0, said
        return said.json

    def add(self) -> Any:
        """Take the folder in; the report, which adds up."""
        added = self.call("add", "-r", self.sources, "--json")
        assert added.code == 0, added
        assert_adds_up(added.json)
        assert added.json["failed"] == 0
        return added.json

    def docs(self, status: str = "active") -> dict[str, Any]:
        """The listed docs by file name; of several versions the last."""
        listed = self.call("ls", "--status", status, "--limit", 0, "--json")
        assert listed.code == 0
        rows = sorted(listed.json["docs"], key=lambda row: row["version"])
        return {self.name_of(row["source"]): row for row in rows}

    def name_of(self, source: str) -> str:
        """A file's path below the sources; the last part of a page's address."""
        if "://" in source:
            return source.rpartition("/")[2]
        return Path(source).resolve().relative_to(self.sources.resolve()).as_posix()

    def found(self, words: Iterable[str], mode: str = "lexical") -> dict[str, list[str]]:
        """The files that each word is found in, sorted; a file with several hits comes so often."""
        batch = self.root / "batch.jsonl"
        wanted = list(words)
        batch.write_text(
            "".join(json.dumps({"_id": w, "text": f'"{w}"'}) + "\n" for w in wanted), "utf-8"
        )
        answered = self.call("search", "--mode", mode, "-k", 100, "--batch", batch)
        assert answered.code == 0, answered
        answers = [json.loads(line) for line in answered.out.splitlines()]
        return {
            answer["_id"]: sorted(self.name_of(hit["source"]) for hit in answer["hits"])
            for answer in answers
        }

    def compact(self) -> None:
        """Until there is nothing left: marked in one run, removed in the next."""
        for _ in range(3):
            compacted = self.call("compact", "--grace-min", 0, "--json")
            assert compacted.code == 0, compacted
            assert compacted.json["problems"] == []

    def content_files(self) -> set[str]:
        folders = (self.home / "raw", self.home / "md")
        return {
            path.relative_to(self.home).as_posix()
            for folder in folders
            for path in folder.rglob("*")
            if path.is_file()
        }


@contextmanager
def _restored() -> Iterator[None]:
    """A command sets the mask of new files and takes SIGTERM; here that must not last."""
    mask, on_term = os.umask(0o077), signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        os.umask(mask)
        signal.signal(signal.SIGTERM, on_term)


def ended(process: "subprocess.Popen[str]", wait_s: float = DEADLINE_S) -> Called:
    """Wait for a command; one that does not end in time is killed, and the test fails."""
    try:
        out, err = process.communicate(timeout=wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Called(code=process.returncode, out=out, err=err)


def wait_until(holds: Callable[[], bool], what: str, wait_s: float = DEADLINE_S) -> None:
    """Poll until it holds; past the deadline the test fails and says what it waited for."""
    end = time.monotonic() + wait_s
    while not holds():
        assert time.monotonic() < end, f"waited {wait_s} s for {what}"
        time.sleep(0.01)


def assert_adds_up(report: Any) -> None:
    """Every source that was scanned has one outcome."""
    outcomes = ("added", "updated", "unchanged", "resurrected", "skipped", "failed")
    assert report["scanned"] == sum(report[name] for name in outcomes)


def assert_one_clear_line(said: Called) -> None:
    """An error is a line for a person, never a traceback."""
    lines = said.err.splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("kb: ")
    assert "unexpected" not in lines[0]
