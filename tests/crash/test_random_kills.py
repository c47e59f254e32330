"""Kills at random moments, several processes on one home, and a parent that keeps its own list."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import crash_processes
import pytest
from crash_rig import Rig, wait_until

KILLS: Final = 24
KILLS_LONG: Final = int(os.environ.get("KB_KILLS", "1000"))
KILLS_PER_LOOK: Final = 24
# A machine that comes to less work between two kills is given more of them, up to so many times.
PATIENCE: Final = 20
ROLES: Final = ("anna", "bert", "add", "worker", "search", "compact", "sync")
ACTIVE_S: Final = (0.005, 0.150)
# How many die before they have come to work.
EARLY_SHARE: Final = 0.15


class Oracle:
    """What each file may say: what was acknowledged last, and what was tried after it."""

    def __init__(self) -> None:
        self.allowed: dict[str, list[str]] = {}
        self.removable: set[str] = set()
        self.outdated: dict[str, str] = {}
        self.known: set[str] = set()
        """Files that were acknowledged at least once."""
        self.acknowledged = 0

    def learn(self, log: Path, *, is_begun: bool) -> None:
        """Read a log; a home may be missing unless the work on it `is_begun`."""
        for line in log.read_text("utf-8").splitlines():
            verb, *rest = line.split(" ", 2)
            match verb:
                case "try":
                    self.allowed.setdefault(rest[0], []).append(rest[1])
                case "ack":
                    self.acknowledged += 1
                    self.known.add(rest[0])
                    words = self.allowed[rest[0]]
                    gone = words[: words.index(rest[1])]
                    self.allowed[rest[0]] = words[len(gone) :]
                    self.outdated.update(dict.fromkeys(gone, rest[0]))
                    self.removable.discard(rest[0])
                case "rm":
                    self.removable.add(rest[0])
                case "ready":
                    pass
                case "fail" if not is_begun and "kb: there is no home at" in line:
                    pass
                case _:
                    pytest.fail(line)

    def settle(self, rig: Rig) -> dict[str, list[str]]:
        """After everything was taken in: each file says what it says. Returns what is found."""
        found: dict[str, list[str]] = {}
        for name, words in self.allowed.items():
            says = (rig.sources / name).read_text("utf-8") if (rig.sources / name).exists() else ""
            self.allowed[name] = [word for word in words if word in says]
            found |= {word: [name] if word in says else [] for word in words}
        self.outdated.clear()
        self.removable.clear()
        return found


@contextmanager
def zygote(root: Path) -> "Iterator[subprocess.Popen[str]]":
    path = os.pathsep.join(dict.fromkeys(entry for entry in sys.path if entry))
    with subprocess.Popen(
        [sys.executable, crash_processes.__file__, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**Rig(root).env(), "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        yield process


def ask(process: "subprocess.Popen[str]", *words: object) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(" ".join(map(str, words)) + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def campaign(rig: Rig, kills: int) -> None:
    """Kill that many at least, and go on until as many writes were acknowledged."""
    seed = int(os.environ.get("KB_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"KB_SEED={seed}")
    rng = random.Random(seed)
    oracle, killed = Oracle(), 0
    with zygote(rig.root) as process:
        while killed < kills or oracle.acknowledged < kills:
            assert killed < PATIENCE * kills, f"{oracle.acknowledged} acknowledged"
            for _ in range(KILLS_PER_LOOK // 2):
                killed += kill_two(rig, rng, process, oracle)
            look(rig, oracle)


def kill_two(rig: Rig, rng: random.Random, process: "subprocess.Popen[str]", oracle: Oracle) -> int:
    """Start two of different roles, let them work for a moment, and kill them."""
    roles, is_begun = rng.sample(ROLES, 2), oracle.acknowledged > 0
    logs = [rig.root / f"log-{role}" for role in roles]
    for log in logs:
        log.unlink(missing_ok=True)
    pids = [
        ask(process, role, rng.randrange(1 << 32), log)
        for role, log in zip(roles, logs, strict=True)
    ]
    if rng.random() > EARLY_SHARE:
        wait_until(lambda: all(log.exists() and log.stat().st_size for log in logs), "a start")
    time.sleep(rng.uniform(*ACTIVE_S))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    statuses = [ask(process, "reap", pid) for pid in pids]
    for log in logs:
        if log.exists():
            oracle.learn(log, is_begun=is_begun)
    assert statuses == [-signal.SIGKILL] * 2, (roles, statuses)
    return len(pids)


def look(rig: Rig, oracle: Oracle) -> None:
    """Nothing acknowledged is lost, nothing is half there, and the caches can be made anew."""
    rig.check()
    rig.drain()
    rig.check()
    docs = rig.docs()
    tried = [word for words in oracle.allowed.values() for word in words]
    found = rig.found([*tried, *oracle.outdated])
    assert [word for word in oracle.outdated if found[word]] == []
    for name, words in oracle.allowed.items():
        hits = [word for word in words if found[word]]
        assert all(found[word] == [name] for word in hits)
        if name in docs:
            assert len(hits) == 1, (name, words, hits)
        else:
            # Removed, or never acknowledged.
            assert hits == []
            assert name in oracle.removable or name not in oracle.known
    rig.add()
    expected = oracle.settle(rig)
    assert rig.found(expected) == expected
    assert anew(rig, expected) == expected
    rig.check()


def anew(rig: Rig, words: dict[str, list[str]]) -> dict[str, list[str]]:
    """What is found after the caches were deleted."""
    meanings = ["words that stand in every folder", *list(words)[:10]]
    before = rig.found(meanings, "dense")
    shutil.rmtree(rig.home / "index")
    (rig.home / "index").mkdir(0o700)
    assert {w: set(names) for w, names in rig.found(meanings, "dense").items()} == {
        w: set(names) for w, names in before.items()
    }
    return rig.found(words)


@pytest.mark.timeout(900)
def test_kills_at_random_moments(tmp_path: Path) -> None:
    """Whoever is killed, whenever: everything acknowledged is there, once, and whole."""
    campaign(Rig(tmp_path), KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_kills_at_random_moments(tmp_path: Path) -> None:
    """The same, KB_KILLS times."""
    campaign(Rig(tmp_path), KILLS_LONG)
