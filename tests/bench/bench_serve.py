"""What `kb serve` bears: one client, many, many requests in a row, and a crowd.

The server is the real command in a process of its own with the built-in model; the clients are
another process, on the same machine. Run with `make bench-serve`.
"""

import argparse
import asyncio
import contextlib
import functools
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import corpus
from run import KB, said

HOST = "127.0.0.1"
CLIENTS = 32
CROWD = 200
REPEATED = 100
ROUNDS = 5
SEED = 5


class Client:
    """One connection that is kept; asked one thing after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> int:
        """The status of one answer, which is read whole."""
        try:
            return await self._asked(path)
        except (OSError, asyncio.IncompleteReadError):
            # The server ended an idle connection; once is no error.
            self._streams = None
            return await self._asked(path)

    async def _asked(self, path: str) -> int:
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port)
        reader, writer = self._streams
        writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        found = re.search(r"content-length: (\d+)", head)
        await reader.readexactly(int(found[1]) if found else 0)
        if "connection: close" in head:
            self.close()
        return int(head[9:12])

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@contextlib.contextmanager
def server(home: Path | str, *options: str) -> Iterator[tuple[int, int]]:
    """The port and the process id of a server."""
    process = subprocess.Popen(
        [KB, "--home", str(home), "serve", "--port", "0", "--no-token", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.communicate()


def made_home(home: Path, books: Path, passages: int) -> None:
    """A home of about so many passages, which the command line opens."""
    corpus.make_home(home, books, passages)
    subprocess.run([KB, "trust", str(home)], check=True, capture_output=True)


WORDS = corpus.Words(SEED)
AGAIN = [WORDS.query() for _ in range(REPEATED)]


def searches(share_repeated: float, seed: int) -> Iterator[str]:
    """Searches without end: new ones, and that share from a few that come again and again."""
    chance = random.Random(seed)
    while True:
        query = chance.choice(AGAIN) if chance.random() < share_repeated else WORDS.query()
        yield f"/v1/search?q={quote(query)}"


def mixed(seed: int) -> Iterator[str]:
    """Searches of both kinds and reads."""
    chance = random.Random(seed)
    found = searches(0.5, seed)
    reads = ("/v1/docs?limit=20", "/v1/topics", "/health/ready", "/v1/entities?limit=20")
    while True:
        yield next(found) if chance.random() < 0.6 else chance.choice(reads)


async def asked(
    port: int,
    clients: int,
    paths: Callable[[int], Iterator[str]],
    *,
    seconds: float = 0.0,
    count: int = 0,
) -> tuple[list[float], Counter[int], float]:
    """Seconds and statuses of answers, and how long all took: until then, or so many."""
    took: list[float] = []
    statuses: Counter[int] = Counter()
    began = time.perf_counter()
    left = count

    async def one(number: int) -> None:
        nonlocal left
        client, mine = Client(port), paths(number)
        while left > 0 if count else time.perf_counter() - began < seconds:
            left -= 1
            started = time.perf_counter()
            statuses[await client.get(next(mine))] += 1
            took.append(time.perf_counter() - started)
        client.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return took, statuses, time.perf_counter() - began


def at(took: list[float], share: float) -> float:
    """A share's place among the times, in milliseconds."""
    return sorted(took)[min(len(took) - 1, int(len(took) * share))] * 1000


def single(port: int, count: int, share_repeated: float) -> dict[str, Any]:
    """One client with queries that are all new, or all from a few."""
    paths = searches(share_repeated, SEED)
    took, statuses, _ = asyncio.run(asked(port, 1, lambda _: paths, count=count))
    return said(
        {
            "name": f"one client, {share_repeated:.0%} repeated",
            "p50_ms": statistics.median(took) * 1000,
            "p95_ms": at(took, 0.95),
            "errors": sum(statuses.values()) - statuses[200],
        }
    )


def many(port: int, seconds: float, share_repeated: float, alone_p50_ms: float) -> dict[str, Any]:
    """Thirty-two clients; the ratio is their 95th percentile against the median of one."""
    took, statuses, took_s = asyncio.run(
        asked(
            port,
            CLIENTS,
            lambda number: searches(share_repeated, SEED + 1 + number),
            seconds=seconds,
        )
    )
    return said(
        {
            "name": f"{CLIENTS} clients, {share_repeated:.0%} repeated",
            "p50_ms": statistics.median(took) * 1000,
            "p95_ms": at(took, 0.95),
            "ratio": at(took, 0.95) / alone_p50_ms,
            "a_second": len(took) / took_s,
            "errors": sum(statuses.values()) - statuses[200],
        }
    )


def processes(home: Path | str, store: str, seconds: float) -> list[dict[str, Any]]:
    """What a second process brings: both servers run, and are asked in turn."""
    with server(home) as (one, _), server(home, "--processes", "2") as (two, _):
        for port in (one, two):
            asyncio.run(asked(port, 8, lambda _: searches(0.0, SEED - 1), count=60))
        alone = single(one, 200, 0.0)["p50_ms"]
        took: dict[int, list[float]] = {one: [], two: []}
        passed = dict.fromkeys(took, 0.0)
        errors: Counter[int] = Counter()
        for turn in range(ROUNDS):
            for port in took:
                paths = functools.partial(_new_searches, turn)
                new, statuses, took_s = asyncio.run(
                    asked(port, CLIENTS, paths, seconds=seconds / ROUNDS)
                )
                took[port] += new
                passed[port] += took_s
                errors[port] += sum(statuses.values()) - statuses[200]
    rows = []
    a_second = {port: len(took[port]) / passed[port] for port in took}
    for port, name in ((one, "1 process"), (two, "2 processes")):
        row = {
            "name": f"{store}, {name}, {CLIENTS} clients",
            "p50_ms": statistics.median(took[port]) * 1000,
            "p95_ms": at(took[port], 0.95),
            "ratio": at(took[port], 0.95) / alone,
            "a_second": a_second[port],
            "errors": errors[port],
        }
        rows.append(said(row))
    return [
        *rows,
        said({"name": f"{store}, 2 processes to 1", "times": a_second[two] / a_second[one]}),
    ]


def _new_searches(turn: int, number: int) -> Iterator[str]:
    return searches(0.0, SEED + 1 + number + 1_000 * turn)


@contextlib.contextmanager
def database_home(scratch: Path, source: Path) -> Iterator[str]:
    """A home in a database of a server of its own, with all that a folder's has; `kb` trusts that.

    Its caches are in `scratch`. Embedding everything once more would take as long as measuring.
    """
    from postgres_server import running_server

    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    with running_server() as database:
        home = database.home("bench")
        moved = [KB, "migrate", "--from", str(source), "--to", home]
        subprocess.run(moved, check=True, capture_output=True)
        # A worker without work leaves the caches level.
        subprocess.run([KB, "--home", home, "worker", "--drain"], check=True, capture_output=True)
        yield home


def memory(port: int, pid: int, counts: list[int]) -> dict[str, Any]:
    """Resident MB after so many requests; the slope is that of what no file backs, at the end."""
    row: dict[str, Any] = {"name": "memory"}
    own: list[float] = []
    before = 0
    for count in counts:
        asyncio.run(
            asked(port, 8, lambda number, b=before: mixed(SEED + b + number), count=count - before)  # type: ignore[misc]
        )
        status = Path(f"/proc/{pid}/status").read_text()
        kinds = {name: int(kb) / 1024 for name, kb in re.findall(r"(\w+):\s+(\d+) kB", status)}
        own.append(kinds["RssAnon"])
        row |= {f"rss_mb_at_{count}": kinds["VmRSS"], f"own_mb_at_{count}": kinds["RssAnon"]}
        before = count
    thousands = (counts[-1] - counts[-2]) / 1000
    return said({**row, "own_mb_a_thousand": (own[-1] - own[-2]) / thousands})


def crowd(port: int, count: int) -> dict[str, Any]:
    """Two hundred clients at once, and meanwhile one that asks whether the server lives."""

    async def both() -> tuple[Counter[int], list[float]]:
        health: list[float] = []

        async def watch() -> None:
            client = Client(port)
            while True:
                started = time.perf_counter()
                assert await client.get("/health/live") == 200
                health.append(time.perf_counter() - started)
                await asyncio.sleep(0.02)

        watching = asyncio.create_task(watch())
        _, statuses, _ = await asked(port, CROWD, lambda n: searches(0.5, SEED + n), count=count)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        return statuses, health

    statuses, health = asyncio.run(both())
    return said(
        {
            "name": f"{CROWD} clients at once",
            "answered": statuses[200],
            "sent_away": statuses[503],
            "errors": sum(statuses.values()) - statuses[200] - statuses[503],
            "health_p50_ms": statistics.median(health) * 1000,
            "health_p95_ms": at(health, 0.95),
        }
    )


def main() -> None:
    """Measure everything, print it, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--passages", type=int, help="how large the home is")
    parser.add_argument("--home", type=Path, help="a home that is there already, to be read")
    parser.add_argument(
        "--processes", action="store_true", help="only what a second process brings, of both stores"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-out/serve.json"))
    options = parser.parse_args()
    passages = options.passages or (5_000 if options.quick else 100_000)
    seconds = 5.0 if options.quick else 60.0
    seconds /= 3 if options.processes else 1
    counts = [200, 1_000, 2_000] if options.quick else [2_000, 10_000, 20_000]
    if options.processes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            home = options.home or folder / "home"
            if options.home is None:
                made_home(home, folder / "books", passages)
            rows = processes(home, "folder", seconds)
            with database_home(folder / "database", home) as address:
                rows += processes(address, "PostgreSQL", seconds)
        _written(options.out.with_name("processes.json"), rows)
        return
    with tempfile.TemporaryDirectory() as temporary:
        home = options.home or Path(temporary) / "home"
        if options.home is None:
            made_home(home, Path(temporary) / "books", passages)
        with server(home) as (port, pid):
            # The model, the caches and their first use are not what is measured.
            asyncio.run(asked(port, 1, lambda _: searches(0.0, SEED - 1), count=20))
            rows = [single(port, 200, 0.0)]
            alone = rows[0]["p50_ms"]
            rows += [many(port, seconds, share, alone) for share in (0.0, 0.5, 0.9)]
            rows.append(single(port, 2_000, 1.0))
            rows.append(many(port, seconds, 1.0, rows[-1]["p50_ms"]))
            rows.append(memory(port, pid, counts))
            rows.append(crowd(port, 2_000))
    _written(options.out, rows)


def _written(out: Path, rows: list[dict[str, Any]]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"written to {out}")


if __name__ == "__main__":
    main()
