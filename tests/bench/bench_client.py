"""What `kb search` gains where a server of the home runs: cold, and over the server's socket.

Whole processes with the built-in model, taken in turn, each query once by each way; the answers
must be the same bytes. Run with `make bench-client`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import corpus
from run import KB

from kb.store.content.layout import HomePaths

WARM_UP = 3


def timed(argv: list[str]) -> tuple[float, bytes]:
    """Seconds of a whole process, and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(argv, capture_output=True)
    took = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stderr.decode()[-500:])
    return took, done.stdout


def measured(home: Path, rounds: int) -> dict[str, Any]:
    """Both ways in turn; the socket is moved aside where the search is to be a cold one."""
    socket = HomePaths(home).socket
    aside = socket.with_suffix(".aside")
    cold: list[float] = []
    warm: list[float] = []
    for number, query in enumerate(corpus.queries(rounds + WARM_UP)):
        argv = [KB, "--home", str(home), "search", query, "--json"]
        socket.rename(aside)
        alone_s, alone = timed(argv)
        aside.rename(socket)
        beside_s, beside = timed(argv)
        if alone != beside:
            sys.exit(f"two answers to {query!r}")
        if number >= WARM_UP:
            cold.append(alone_s)
            warm.append(beside_s)
    alone_ms, beside_ms = statistics.median(cold) * 1000, statistics.median(warm) * 1000
    return {
        "cold_ms": round(alone_ms, 1),
        "socket_ms": round(beside_ms, 1),
        "cold_p95_ms": round(statistics.quantiles(cold, n=20)[-1] * 1000, 1),
        "socket_p95_ms": round(statistics.quantiles(warm, n=20)[-1] * 1000, 1),
        "ratio": round(alone_ms / beside_ms, 2),
        "rounds": rounds,
    }


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=25)
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        corpus.make_home(home, Path(scratch) / "books", said.passages)
        argv = [KB, "--home", str(home), "serve", "--port", "0"]
        server = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert server.stdout is not None
            server.stdout.readline()
            print(json.dumps({"passages": said.passages, **measured(home, said.rounds)}))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
