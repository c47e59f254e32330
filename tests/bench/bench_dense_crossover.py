"""From how many rows on does a graph pay? Prints one JSON object a line.

Run it as `python tests/bench/bench_dense_crossover.py [ROWS ...]`; about half an hour in all.
Vectors are drawn, not embedded: `clustered` lie around 1,000 centres, `random` around none.
`filtered` has searches of those rows that a filter lets through: by the exact scan, which is what
answers them, and what a graph would find of them if its nearest were filtered afterwards.
Milliseconds are of the processor, so that other work says little.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kb.search.index import hnsw, scan
from kb.search.index.segments import Segment, SegmentWriter, map_segment, memory_segment, unit_rows

DIM = 384
LIMIT = 200
QUERIES = 40
EF = 256
BLOCK_ROWS = 10_000
SHARES = (1.0, 0.05, 0.001)


def drawn(rng: np.random.Generator, rows: int, centres: np.ndarray | None) -> np.ndarray:
    noise = rng.standard_normal((rows, DIM), dtype=np.float32)
    if centres is None:
        return unit_rows(noise)
    return unit_rows(centres[rng.integers(len(centres), size=rows)] * 1.5 + noise)


def written(
    folder: Path, rng: np.random.Generator, rows: int, centres: np.ndarray | None
) -> Segment:
    with SegmentWriter(folder, DIM) as writer:
        for low in range(0, rows, BLOCK_ROWS):
            nos = np.arange(low + 1, min(low + BLOCK_ROWS, rows) + 1, dtype="<u8")
            writer.append(memory_segment(nos, nos, drawn(rng, len(nos), centres)))
    return writer.finish()


def timed_ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e3


def drop_from_page_cache(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def exact(part: Segment, query: np.ndarray, allowed: np.ndarray | None = None) -> list[int]:
    rows = scan.candidate_rows([part], query, LIMIT, allowed, None)
    return scan.rank_exact([part], rows, query, LIMIT).nos


def recall(found: list[list[int]], truth: list[list[int]], depth: int) -> float:
    shares = [
        len(set(f[:depth]) & set(t[:depth])) / depth for f, t in zip(found, truth, strict=True)
    ]
    return round(statistics.mean(shares), 4)


def filtered(
    part: Segment, graph: hnsw.Graph | None, queries: np.ndarray, share: float
) -> dict[str, float]:
    """Searches of a share of the rows, drawn at random."""
    rng = np.random.default_rng(3)
    allowed = np.sort(part.nos[rng.random(len(part.nos)) < share])
    truth = [exact(part, query, allowed) for query in queries]
    times = sorted(timed_ms(lambda q=query: exact(part, q, allowed)) for query in queries)
    row = {
        "exact_p50_ms": round(statistics.median(times), 2),
        "exact_p95_ms": round(times[int(len(times) * 0.95)], 2),
    }
    if graph is not None:
        near = [np.sort(graph.nearest(query, 2 * LIMIT)) for query in queries]
        passing = [rows[np.isin(part.nos[rows], allowed)] for rows in near]
        found = [
            scan.rank_exact([part], [rows], query, LIMIT).nos
            for rows, query in zip(passing, queries, strict=True)
        ]
        row["graph_recall_at_10"] = recall(found, truth, 10)
    return row


def own_mb() -> int:
    """The memory of this process that is no file's, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) // 1024


def measured(kind: str, rows: int, *, graphs: bool) -> dict[str, object]:
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((1_000, DIM), dtype=np.float32) if kind == "clustered" else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        part = written(folder, rng, rows, centres)
        queries = drawn(rng, QUERIES, centres)
        entry = part.entry
        assert entry is not None
        truth = [exact(part, query) for query in queries]
        exact_ms = [timed_ms(lambda q=query: exact(part, q)) for query in queries]
        del part
        drop_from_page_cache(folder / entry.vectors.name)
        part = map_segment(folder, entry, DIM)
        cold_ms = timed_ms(lambda: exact(part, queries[0]))
        row: dict[str, object] = {
            "vectors": kind,
            "rows": rows,
            "dim": DIM,
            "limit": LIMIT,
            "exact_p50_ms": round(statistics.median(exact_ms), 2),
            "exact_p95_ms": round(sorted(exact_ms)[int(QUERIES * 0.95)], 2),
            "exact_ms_cold": round(cold_ms, 1),
        }
        if not graphs:
            filters = {f"{share:.1%}": filtered(part, None, queries, share) for share in SHARES}
            return row | {"filtered": filters}
        without_mb = own_mb()
        start = time.process_time()
        graph_entry = hnsw.build(folder, part)
        build_s = time.process_time() - start
        start = time.process_time()
        graph = hnsw.load(folder, graph_entry, part, EF)
        load_s = time.process_time() - start
        assert graph is not None
        loaded_mb = own_mb()

        def by_graph(query: np.ndarray) -> list[int]:
            return scan.rank_by_graph([part], part, graph, query, LIMIT).nos

        found = [by_graph(query) for query in queries]
        graph_ms = [timed_ms(lambda q=query: by_graph(q)) for query in queries]
        row |= {
            "hnsw_build_s": round(build_s, 1),
            "hnsw_loaded_mb": loaded_mb - without_mb,
            "hnsw_load_s": round(load_s, 2),
            "hnsw_file_mb": round(graph_entry.file.size_bytes / 1e6),
            "hnsw_p50_ms": round(statistics.median(graph_ms), 2),
            "hnsw_p95_ms": round(sorted(graph_ms)[int(QUERIES * 0.95)], 2),
            "recall_at_10": recall(found, truth, 10),
            "recall_at_200": recall(found, truth, LIMIT),
            "filtered": {f"{share:.1%}": filtered(part, graph, queries, share) for share in SHARES},
        }
        return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--no-graphs", action="store_true", help="the exact scan alone")
    options = parser.parse_args()
    for size in options.rows:
        kinds = ("clustered", "random") if size <= 10_000 else ("clustered",)
        for kind in kinds:
            row = measured(kind, size, graphs=not options.no_graphs)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
