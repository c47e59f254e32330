"""What a home on PostgreSQL costs beside one on LMDB, in one run: round trips, processor, workers.

The server is one that this starts, on a Unix socket. Both homes have the same docs. Run with
`make bench-postgres`.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import corpus
import s3_server
from counting_proxy import ProxyProcess, proxy_process
from postgres_server import PostgresServer, running_server
from run import KB

from kb.home.app import App
from kb.intake.sync.add import AddOptions
from kb.intake.worker.pool import PoolModels, WorkerPool
from kb.intake.worker.settings import WorkerSettings
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest
from kb.store import chunks, docs
from kb.store.bucket.place import BucketPlace
from kb.store.bucket_content import use_bucket
from kb.store.codec import u64
from kb.store.content.database import local_folder
from kb.store.kv import ReadTxn

DELAY_S = 0.001
BUCKET_DELAY_S = 0.02
WARM_UP = 5
HASHING = ("--cfg", "embed.kind=hashing")


def said(name: str, **figures: float) -> None:
    """Print a figure as it is known."""
    print(
        json.dumps({"name": name, **{key: round(n, 3) for key, n in figures.items()}}), flush=True
    )


def by_port(port: int, schema: str) -> str:
    """The address of a home through a proxy."""
    return f"postgresql://kb@127.0.0.1:{port}/postgres/{schema}?sslmode=disable"


def search_all(app: App, queries: list[str]) -> list[float]:
    """Seconds of each search."""
    seconds = []
    for query in queries:
        began = time.perf_counter()
        app.searcher.search(SearchRequest(query=query), OPERATOR)
        seconds.append(time.perf_counter() - began)
    return seconds


def processor_ms(do: Callable[[], object]) -> float:
    """Milliseconds of processor time of this process."""
    began = time.process_time()
    do()
    return (time.process_time() - began) * 1000


def single_get_ms(app: App, count: int) -> float:
    """Processor time of one look-up of a chunk that nobody has read before."""
    with app.store.read() as txn:
        nos = list(chunks.all_numbers(txn))[-count:]

    def get_all(txn: ReadTxn) -> None:
        for no in nos:
            txn.get("chunks", u64(no))

    with app.store.read() as txn:
        return processor_ms(lambda: get_all(txn)) / len(nos)


def searches(lmdb: App, shared: App, count: int) -> None:
    """The processor time of new searches, each by both stores in turn."""
    spent: dict[str, list[float]] = {"lmdb": [], "postgres": []}
    for number, query in enumerate(corpus.queries(count + WARM_UP)):
        for name, app in (("lmdb", lmdb), ("postgres", shared)):
            ms = processor_ms(lambda app=app, query=query: search_all(app, [query]))  # type: ignore[misc]
            if number >= WARM_UP:
                spent[name].append(ms)
    means = {name: statistics.fmean(values) for name, values in spent.items()}
    get_ms = single_get_ms(shared, 300)
    said(
        "processor of a search",
        lmdb_ms=means["lmdb"],
        postgres_ms=means["postgres"],
        ratio=means["postgres"] / means["lmdb"],
        single_get_ms=get_ms,
        single_gets_more=(means["postgres"] - means["lmdb"]) / get_ms,
    )


def round_trips(app: App, proxy: ProxyProcess, scratch: Path, count: int) -> None:
    """What a search, a doc of 20 passages and a catch-up of 1,000 passages wait for."""
    counts = []
    for query in corpus.queries(count):
        before = proxy.round_trips
        search_all(app, [query])
        counts.append(proxy.round_trips - before)
    said("round trips of a search", mean=statistics.fmean(counts), most=max(counts))
    embedder = corpus.InstantEmbedder(corpus.builtin_model_dir())
    models = PoolModels(active=lambda: embedder)
    for name, passages in (("doc", 20), ("docs", 1_000)):
        corpus.write_books(scratch / name, passages, seed=passages)
        add(app, scratch / name)
        pool = WorkerPool(app.store, app.content, models, WorkerSettings(threads=1))
        before = proxy.round_trips
        while pool._work_once():
            pass
        said(f"round trips of working off {passages} passages", n=proxy.round_trips - before)
        before = proxy.round_trips
        app.catch_up()
        said(f"round trips of catching up {passages} passages", n=proxy.round_trips - before)


def proxied(server: PostgresServer, schema: str, count: int) -> None:
    """The median of new searches, through a proxy that adds nothing and through one that adds."""
    medians: dict[float, float] = {}
    socket = server.folder / f".s.PGSQL.{server.port}"
    with ExitStack() as stack:
        apps = {}
        for delay_s in (0.0, DELAY_S):
            proxy = stack.enter_context(proxy_process(socket, delay_s))
            folder = local_folder(by_port(proxy.port, schema))
            apps[delay_s] = stack.enter_context(App.open(folder, load([], [])))
            apps[delay_s].catch_up()
        queries = list(corpus.queries(count + WARM_UP))
        for delay_s, app in apps.items():
            search_all(app, queries[:WARM_UP])
            medians[delay_s] = statistics.median(search_all(app, queries[WARM_UP:])) * 1000
    said(
        "search p50 through a proxy that adds 1 ms a round trip",
        without_ms=medians[0.0],
        with_ms=medians[DELAY_S],
        more_ms=medians[DELAY_S] - medians[0.0],
    )


def add(app: App, folder: Path) -> None:
    """Take a folder in; its jobs wait."""
    with app.parser() as parser:
        app.adder(parser, AddOptions(recursive=True)).add([str(folder)])


def busy_s() -> float:
    """Seconds that all cores of this machine have been busy."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    ticks = [int(field) for field in fields]
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


@contextmanager
def measured(name: str, passages: int) -> Iterator[None]:
    """Chunks a second of a block, and what bounds them: the processor of workers and of all."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy, began = busy_s(), time.perf_counter()
    yield
    seconds, busy = time.perf_counter() - began, busy_s() - busy
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    workers_s = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
    said(
        name,
        chunks_a_second=passages / seconds,
        cores_of_workers=workers_s / seconds,
        cores_of_all=busy / seconds,
        worker_ms_a_chunk=workers_s * 1000 / passages,
    )


def workers(homes: Callable[[str], str], scratch: Path, passages: int, store: str) -> None:
    """Chunks a second of 1, 2 and 4 workers on hashing embeddings, each in a home of its own."""
    books = scratch / f"worked-on-{store}"
    corpus.write_books(books, passages, seed=3)
    for count in (1, 2, 4):
        argv = [KB, "--home", homes(f"w{count}"), *HASHING, "--cfg", "work.threads=1"]
        subprocess.run(
            [*argv, "add", "-r", "--no-wait", str(books)], check=True, capture_output=True
        )
        with measured(f"{count} workers on {store}", passages):
            running = [
                subprocess.Popen([*argv, "worker", "--drain"], stdout=subprocess.DEVNULL)
                for _ in range(count)
            ]
            if any(process.wait() for process in running):
                sys.exit("a worker failed")


def commits(app: App, seconds: float) -> None:
    """Commits a second of one record each: what one writer at a time bounds."""
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        with app.store.write() as txn:
            txn.put("signals", b"bench", b"%d" % count)
        count += 1
    said("commits a second of one record", n=count / seconds)


def originals(server: PostgresServer, scratch: Path, count: int) -> None:
    """What an original of 256 KB takes in the database, and in a bucket that answers late."""
    folder = scratch / "originals"
    folder.mkdir()
    for number in range(count):
        noise = random.Random(number).randbytes(128 << 10).hex()
        page = f"<html><body><p>Page {number}</p><!-- {noise} --></body></html>"
        (folder / f"{number}.html").write_text(page)
    os.environ.update(s3_server.ENVIRONMENT)
    for delay_s in (None, 0.0, BUCKET_DELAY_S):
        with ExitStack() as stack:
            app = stack.enter_context(App.open(local_folder(server.home()), load([], HASHING[1:])))
            asked: list[s3_server.S3Request] = []
            name = "database"
            if delay_s is not None:
                bucket = stack.enter_context(s3_server.serving())
                url = f"s3://{s3_server.BUCKET}"
                use_bucket(app.store, BucketPlace(url=url, endpoint=bucket.endpoint))
                # None: the request is then answered as usual.
                bucket.faults.append(lambda _, delay_s=delay_s: time.sleep(delay_s))
                asked = bucket.requests
                asked.clear()
                name = f"bucket that takes {delay_s * 1000:g} ms"
            before, began = app.store.size_bytes(), time.perf_counter()
            add(app, folder)
            seconds, added = time.perf_counter() - began, len(asked)
            with app.store.read() as txn:
                found = [(doc.raw_path, doc.raw_sha256) for doc in docs.all_latest(txn)]
            began = time.perf_counter()
            for path, sha256 in found:
                app.content.read(path, sha256)
            said(
                f"originals of 256 KB in the {name}",
                add_ms_each=seconds * 1000 / count,
                read_ms_each=(time.perf_counter() - began) * 1000 / count,
                requests_to_add_each=added / count,
                requests_to_read_each=(len(asked) - added) / count,
                database_bytes_each=(app.store.size_bytes() - before) / count,
            )


def main() -> None:
    """Measure, and print one JSON document a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=5_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--worked", type=int, default=4_000)
    parser.add_argument("--originals", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, running_server() as server:
        scratch = Path(made)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        corpus.write_books(scratch / "books", asked.passages)
        lmdb, home = scratch / "lmdb", server.home("books")
        for folder in (lmdb, local_folder(home)):
            corpus.take_in(folder, scratch / "books", None)
            subprocess.run([KB, "trust", str(lmdb), "--yes"], check=True, capture_output=True)
        with App.open(lmdb, load([], [])) as one, App.open(local_folder(home), load([], [])) as two:
            searches(one, two, asked.queries)
            commits(one, 2.0)
            commits(two, 2.0)
        proxied(server, "books", asked.queries)
        socket = server.folder / f".s.PGSQL.{server.port}"
        with proxy_process(socket) as proxy:
            folder = local_folder(by_port(proxy.port, "books"))
            with App.open(folder, load([], [])) as app:
                app.catch_up()
                search_all(app, list(corpus.queries(WARM_UP)))
                round_trips(app, proxy, scratch, asked.queries)
        originals(server, scratch, asked.originals)
        workers(server.home, scratch, asked.worked, "postgres")
        workers(lambda name: str(scratch / name), scratch, asked.worked, "lmdb")


if __name__ == "__main__":
    main()
