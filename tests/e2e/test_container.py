"""What the container runs, run here: its server needs a token, and its health check tells."""

import json
import re
import subprocess
import sys
from pathlib import Path

from commands import HASHING, KB, run, surroundings
from http_server import until

ROOT = Path(__file__).resolve().parents[2]
TEXT = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text("utf-8"))


def words(instruction: str) -> list[str]:
    """The list that the last line of an instruction ends with."""
    *_, line = re.findall(rf"(?m)^{instruction} .*$", TEXT)
    return list(json.loads(line[line.index("[") :]))


def test_the_servers_health_check_passes_while_it_answers(tmp_path: Path) -> None:
    """In an empty volume it wants a token first, and keeps all that it writes in the volume."""
    variables = dict(re.findall(r"(\w+)=(/data\S*)", TEXT))
    volume = {name: place.replace("/data", str(tmp_path), 1) for name, place in variables.items()}
    assert {"HOME", "XDG_DATA_HOME"} <= volume.keys()
    env = surroundings(**volume)
    serve = [KB, *HASHING, *words("CMD")]
    serve[serve.index("--port") + 1] = "0"
    refused = run(serve, env=env, cwd=tmp_path)
    assert refused.code == 2
    assert "`kb token add NAME` makes one" in refused.err
    assert run([KB, "token", "add", "me"], env=env, cwd=tmp_path).code == 0
    with subprocess.Popen(
        serve, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            port = re.findall(r":(\d+)", server.stdout.readline())[-1]
            _, *check = words("HEALTHCHECK")
            argv = [sys.executable, *(word.replace(":7777/", f":{port}/") for word in check)]
            assert argv[2] != check[1]
            until(lambda: run(argv, env=env).code == 0, 30)
        finally:
            server.terminate()
            server.wait(30)
    assert run(argv, env=env).code == 1
