"""A server that outlives a full disk: notes that kb has taken are placed once there is space."""

import resource
import shutil
from pathlib import Path

import pytest
from commands import Home
from http_server import serving, until

pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit is not installed")


class LimitedHome(Home):
    """A home whose commands can write nothing into a file, until that is lifted."""

    def argv(self, *args: object) -> list[str]:
        return ["prlimit", "--fsize=0:unlimited", *super().argv(*args)]


def test_notes_are_placed_once_there_is_space(tmp_path: Path) -> None:
    """Not ready meanwhile, and it says why; then the work is done without a new start."""
    home = Home(tmp_path / "home")
    assert home.run("note", "add", "--wait", "The first note.").code == 0
    job = home.run("note", "add", "# Medlar\n\nA medlar.").out.strip()
    with serving(LimitedHome(home.root), forks=False) as server:
        until(lambda: server.get("/health/ready").status == 503)
        assert "the workers try again" in server.get("/health/ready").json["detail"]
        assert server.get(f"/jobs/{job}").json["status"] != "done"
        assert server.get("/v1/docs").status == 200
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        until(lambda: server.get(f"/jobs/{job}").json["status"] == "done", 60)
        until(lambda: server.get("/health/ready").status == 200)
        code, err = server.stop()
    assert code == 0
    assert "a worker failed" in err
    assert "the workers work again" in err
    assert home.run("check").code == 0
