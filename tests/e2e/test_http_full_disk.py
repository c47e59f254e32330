"""A server that outlives a full disk: notes that it has taken are placed once there is space."""

import resource
import sys
from pathlib import Path

import pytest
from commands import Home
from http_server import serving, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sets a limit of another process")
_NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def test_notes_are_placed_once_there_is_space(tmp_path: Path) -> None:
    """Not ready meanwhile, and it says why; ready again without a new start."""
    home = Home(tmp_path / "home")
    assert home.run("note", "add", "--wait", "The first note.").code == 0
    with serving(home) as server:
        pid = server.process.pid
        taken = server.post("/content", {"content": "# Quince\n\nA quince."})
        assert taken.status == 202
        until(lambda: server.get(f"/jobs/{taken.json['job_id']}").json["status"] == "done")
        # No file of it may grow, and none may be made with anything in it.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        more = server.post("/content", {"content": "# Medlar\n\nA medlar."})
        if more.status == 202:
            until(lambda: server.get("/health/ready").status == 503)
            problem = server.get("/health/ready").json
            assert "no space" in problem["detail"] or "cannot be used" in problem["detail"]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, _NO_LIMIT)
        print(more.status, more.body)
        if more.status != 202:
            more = server.post("/content", {"content": "# Medlar\n\nA medlar."})
        until(lambda: server.get(f"/jobs/{more.json['job_id']}").json["status"] == "done", 60)
        until(lambda: server.get("/health/ready").status == 200)
        code, err = server.stop()
    assert code == 0
    print(err)
    assert home.run("check").code == 0
