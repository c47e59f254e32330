"""The file lock."""

import subprocess
import sys
from pathlib import Path

import pytest

from kb.errors import StoreBusy
from kb.store.content.lock import file_lock

_HOLD = """
import sys
from pathlib import Path
from kb.store.content.lock import file_lock
with file_lock(Path(sys.argv[1]), 1):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_waits_and_then_gives_up(tmp_path: Path) -> None:
    """StoreBusy after the wait, in the same process as in another."""
    with (
        file_lock(tmp_path / "lock", 0),
        pytest.raises(StoreBusy),
        file_lock(tmp_path / "lock", 0.05),
    ):
        pass
    with file_lock(tmp_path / "lock", 0):
        pass


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    """The lock dies with its process; its file stays."""
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(StoreBusy), file_lock(tmp_path / "lock", 0):
            pass
        child.kill()
    with file_lock(tmp_path / "lock", 1):
        assert (tmp_path / "lock").exists()


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    """Nothing is made where it leads."""
    (tmp_path / "lock").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic links"), file_lock(tmp_path / "lock", 0):
        pass
    assert not (tmp_path / "outside").exists()
