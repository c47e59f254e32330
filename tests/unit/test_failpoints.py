"""Places that a test can make fail."""

import errno
import signal
import subprocess
from pathlib import Path

import pytest
from child_processes import finished

from kb.model import failpoints

_HIT_TWICE = """
from kb.model.failpoints import failpoint
for _ in range(2):
    try:
        failpoint("store.before_commit")
        print("passed")
    except OSError as error:
        print(error.errno)
"""


def child(spec: str, log: Path | None = None) -> subprocess.CompletedProcess[str]:
    logged = {"KB_FAILPOINTS_LOG": str(log)} if log else {}
    return finished(_HIT_TWICE, KB_FAILPOINTS=spec, **logged)


def test_nothing_happens_unarmed() -> None:
    """Without a specification a failpoint passes."""
    assert child("").stdout == "passed\npassed\n"
    failpoints.failpoint("store.before_commit")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("store.before_commit=enospc", [errno.ENOSPC, errno.ENOSPC]),
        ("store.before_commit=eio@2", ["passed", errno.EIO]),
        ("store.before_commit=eio@3", ["passed", "passed"]),
        ("store.after_commit=eio", ["passed", "passed"]),
        (";store.after_commit=kill;store.before_commit=eio;", [errno.EIO, errno.EIO]),
    ],
)
def test_an_armed_point_fails_from_its_hit_on(spec: str, expected: list[object]) -> None:
    """The named point raises from the given hit on; others pass."""
    assert child(spec).stdout.split() == [str(word) for word in expected]


def test_kill_kills() -> None:
    """A kill is a SIGKILL, without a word."""
    done = child("store.before_commit=kill@2")
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")


@pytest.mark.parametrize(
    "spec", ["no.such=kill", "store.before_commit=melt", "store.before_commit"]
)
def test_a_misspelt_point_is_refused(spec: str) -> None:
    """An unknown name or action stops the program at once, naming it."""
    done = child(spec)
    assert done.returncode == 1
    assert f"no such failpoint or action: {spec!r}" in done.stderr


def test_hits_are_logged(tmp_path: Path) -> None:
    """With a log each hit is one line, armed or not."""
    log = tmp_path / "hits"
    child("", log)
    assert log.read_text() == "store.before_commit\n" * 2


def test_pause_waits_and_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause sleeps for its time and goes on."""
    slept: list[float] = []
    monkeypatch.setattr(failpoints, "_armed", {"store.before_commit": ("pause", 1)})
    monkeypatch.setattr(failpoints, "_hits", {})
    monkeypatch.setattr("time.sleep", slept.append)
    failpoints.failpoint("store.before_commit")
    assert slept == [2.0]


def test_names_are_unique_and_roomed() -> None:
    """Each point is declared once, as room.step."""
    assert len(set(failpoints.NAMES)) == len(failpoints.NAMES)
    assert all(name.count(".") == 1 for name in failpoints.NAMES)
