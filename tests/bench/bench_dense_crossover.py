"""From how many rows on does a graph pay? Prints one JSON object a line.

Run it as `python tests/bench/bench_dense_crossover.py [ROWS ...]`; about five minutes in all.
Vectors are drawn, not embedded: `clustered` lie around 1,000 centres, `random` around none.
"""

import json
import os
import statistics
import sys
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
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def drop_from_page_cache(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def exact(part: Segment, query: np.ndarray) -> list[int]:
    rows = scan.candidate_rows([part], query, LIMIT, None, None)
    return scan.rank_exact([part], rows, query, LIMIT).nos


def recall(found: list[list[int]], truth: list[list[int]], depth: int) -> float:
    shares = [
        len(set(f[:depth]) & set(t[:depth])) / depth for f, t in zip(found, truth, strict=True)
    ]
    return round(statistics.mean(shares), 4)


def measured(kind: str, rows: int) -> dict[str, object]:
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
        start = time.perf_counter()
        graph_entry = hnsw.build(folder, part)
        build_s = time.perf_counter() - start
        start = time.perf_counter()
        graph = hnsw.load(folder, graph_entry, part, EF)
        load_s = time.perf_counter() - start
        assert graph is not None

        def by_graph(query: np.ndarray) -> list[int]:
            return scan.rank_by_graph([part], part, graph, query, LIMIT).nos

        found = [by_graph(query) for query in queries]
        graph_ms = [timed_ms(lambda q=query: by_graph(q)) for query in queries]
        return {
            "vectors": kind,
            "rows": rows,
            "dim": DIM,
            "limit": LIMIT,
            "exact_ms_warm": round(statistics.median(exact_ms), 2),
            "exact_ms_cold": round(cold_ms, 1),
            "hnsw_build_s": round(build_s, 1),
            "hnsw_load_s": round(load_s, 2),
            "hnsw_file_mb": round(graph_entry.file.size_bytes / 1e6),
            "hnsw_ms": round(statistics.median(graph_ms), 2),
            "recall_at_10": recall(found, truth, 10),
            "recall_at_200": recall(found, truth, LIMIT),
        }


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or [10_000, 100_000, 300_000]
    for rows in sizes:
        kinds = ("clustered", "random") if rows <= 10_000 else ("clustered",)
        for kind in kinds:
            print(json.dumps(measured(kind, rows)), flush=True)


if __name__ == "__main__":
    main()
