"""A home that a history is done to by real commands, some of which are killed."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from child_processes import TESTS_PATH
from commands import surroundings
from histories import (
    PACK,
    Add,
    AddAll,
    BackUp,
    ChangeModel,
    Compact,
    Forget,
    LoseIndex,
    MoveHome,
    OnHome,
    PackAdd,
    PackRemove,
    Remove,
    Repair,
    Restore,
    Show,
    Sync,
    Tick,
    Work,
)
from histories_home import START_MS, InProcess
from histories_kb import Models, SetClock

_SETTINGS: Final = ("embed.kind=hashing", "chunk.tokens_max=32", "chunk.overlap_tokens=0")
_OK: Final = (0,)
KILLABLE: Final = (
    Add,
    AddAll,
    Forget,
    Remove,
    Show,
    Sync,
    Compact,
    Work,
    Repair,
    ChangeModel,
    PackAdd,
    PackRemove,
)
# Done already, by the one before it that was killed.
_UNKNOWN: Final = 4
_HELD_BACK: Final = 6
# A pack that names files which are not there.
_FAILED: Final = 3
_KILLED_WITHIN_S: Final = 0.8
_TIMEOUT_S: Final = 120.0


class ByCommand(InProcess):
    """One history, by `kb` in processes of their own; looked at in this one, between them."""

    models = Models()

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._restored = Path()
        super().__init__()
        self._trust()

    def _new_clock(self) -> SetClock:
        return SetClock(START_MS - time.time_ns() // 1_000_000)

    def do_killed(self, op: OnHome) -> None:
        """Kill the command somewhere on its way, and do it again."""
        self.app.close()
        for words in self._words(op):
            child = self._start(words)
            time.sleep(self._rng.random() * _KILLED_WITHIN_S)
            child.kill()
            child.communicate()
        self._open()
        if isinstance(op, Compact):
            # It may have come to its end.
            self.library.do(op, self.clock.now_ms())
        self.step(op)

    def do_at_once(self, ops: list[OnHome], *, killed: bool) -> None:
        """Do them by as many processes at the same time; kill the first, and do it again."""
        self.app.close()
        started = [(op, self._start(words)) for op in ops for words in self._words(op)]
        victim = started[0] if killed and started else None
        if victim:
            time.sleep(self._rng.random() * _KILLED_WITHIN_S)
            victim[1].kill()
        for one in started:
            _, said = one[1].communicate(timeout=_TIMEOUT_S)
            assert one[1].returncode == 0 or one is victim, said
        self._open()
        # What a compaction may have forgotten, an add beside it may have brought back before.
        for op in sorted(ops, key=lambda op: not isinstance(op, Compact)):
            self.library.do(op, self.clock.now_ms())
        if victim:
            self.step(victim[0])
        else:
            self.look(whole=False)

    def _do(self, op: OnHome) -> None:
        self.app.close()
        self._run(op)
        self._open()

    def _run(self, op: OnHome) -> None:
        match op:
            case Tick(ms):
                self.clock.jump(ms)
            case LoseIndex():
                shutil.rmtree(self._home / "index", ignore_errors=True)
            case MoveHome():
                before, self._home = self._home, self._next_home()
                before.rename(self._home)
                self._trust()
            case BackUp():
                self._drop_backup()
                self._backup = self._next_home()
                self._command(op)
            case Restore():
                if self._backup is not None:
                    before, self._restored = self._home, self._next_home()
                    self._command(op)
                    shutil.rmtree(before)
                    self._home = self._restored
            case _:
                self._command(op)

    def _trust(self) -> None:
        """Say that the home is this user's, which no command made where it is."""
        child = self._start(["trust", str(self._home), "--yes"])
        _, said = child.communicate(timeout=_TIMEOUT_S)
        assert child.returncode == 0, said

    def _command(self, op: OnHome) -> None:
        for words in self._words(op):
            child = self._start(words)
            _, said = child.communicate(timeout=_TIMEOUT_S)
            assert child.returncode in _codes(op), (words, child.returncode, said)

    def _start(self, words: list[str]) -> "subprocess.Popen[str]":
        settings = [word for one in _SETTINGS for word in ("--cfg", one)]
        # To trust a home is not to work in it.
        said = [] if words[0] == "trust" else ["--home", str(self._home)]
        shim = str(Path(__file__).with_name("histories_kb.py"))
        return subprocess.Popen(
            [sys.executable, shim, str(self.clock.offset_ms), *said, *settings, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=surroundings(
                PYTHONPATH=TESTS_PATH,
                XDG_DATA_HOME=str(self._root / "data"),
                XDG_CONFIG_HOME=str(self._root / "config"),
            ),
        )

    def _words(self, op: OnHome) -> list[list[str]]:
        """The commands that an operation is; none where it is about nothing that there is."""
        match op:
            case Add(place, visibility, wait) | AddAll(place, visibility, wait):
                if not (self.disk.root / place).exists():
                    return []
                said = ["add", *_recursive(op), str(self.disk.root / place), *_shown(visibility)]
                return [said if wait else [*said, "--no-wait"]]
            case Forget(folder):
                return [["sources", "rm", str(self.disk.root / folder)]]
            case Remove(place):
                return [["rm", "--yes", ident] for ident in self._ids(place)]
            case Show(place, visibility):
                return [["visibility", ident, visibility] for ident in self._ids(place)]
            case Sync(accept_deletions):
                said = ["sync-all", "--interval-min", "0"]
                return [[*said, "--accept-deletions"] if accept_deletions else said]
            case PackAdd(visibility):
                return [["pack", "add", str(self.disk.root / PACK), *_shown(visibility)]]
            case PackRemove():
                return [["pack", "rm", "p"]]
            case _:
                return self._words_on_the_whole(op)

    def _words_on_the_whole(self, op: OnHome) -> list[list[str]]:
        match op:
            case Compact(grace_min):
                return [["compact", "--grace-min", str(grace_min)]]
            case Work():
                return [["worker", "--drain"]]
            case Repair():
                return [["check", "--repair"]]
            case BackUp():
                return [["backup", "create", "--to", str(self._backup)]]
            case Restore():
                return [["backup", "restore", str(self._backup), "--to", str(self._restored)]]
            case ChangeModel(model):
                return [["embedder", "set", "hashing" if model == "one" else "other"]]
            case _:
                return []


def _recursive(op: OnHome) -> list[str]:
    return ["-r"] if isinstance(op, AddAll) else []


def _shown(visibility: str | None) -> list[str]:
    return ["--visibility", visibility] if visibility else []


def _codes(op: OnHome) -> tuple[int, ...]:
    if isinstance(op, Sync):
        return (0, _FAILED, _HELD_BACK)
    if isinstance(op, PackAdd):
        return (0, _FAILED)
    if isinstance(op, Forget | PackRemove | Remove):
        return (0, _UNKNOWN)
    return _OK
