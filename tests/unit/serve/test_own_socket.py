"""The socket in a home."""

import stat
from pathlib import Path

import pytest

from kb.serve.local_socket import own_socket


def test_the_folder_is_its_owners(tmp_path: Path) -> None:
    """Made or found, nobody else may enter it."""
    (tmp_path / "run").mkdir(mode=0o755)
    with own_socket(tmp_path / "run" / "kb.sock") as listener:
        assert listener is not None
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["run", "run/kb.lock"])
def test_a_link_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """There is no socket, and what the link leads to keeps its mode and its content."""
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o755)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(outside if name == "run" else outside / "file")
    with own_socket(tmp_path / "run" / "kb.sock") as listener:
        assert listener is None
    assert "no socket in the home" in caplog.text
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    assert list(outside.iterdir()) == []
