"""What does a warm search take, stage by stage? Processor time, without the query's embedding.

    python tests/bench/bench_warm.py --home HOME [--queries N] [--rounds N] [BEFORE]

HOME is a home such as `make bench-growth` keeps; it is copied. With BEFORE, a revision, both
revisions search a copy in turn, round by round, by the same Python, so that other work on the
machine slows both. Each round is searched twice:
once as it is, for the median, and once with clocks around the stages, which cost a little
themselves. A stage's time is its own, without that of stages inside it. Prints a table, and with
--json one object. `make bench-warm GROWN=HOME BEFORE=REVISION`.
"""

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from revisions import Revision

from kb.home.app import App
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest

QUERIES: Final = 100
ROUNDS: Final = 6
WARM_UP: Final = 10
REST: Final = "the rest"
EMBEDDING: Final = "embedding"
STAGES: Final = (
    ("prepare", "kb.search.legs:HomeLegs.prepare"),
    ("follow the words' index", "kb.search.legs:HomeLegs.follow_lexical"),
    ("respell", "kb.search.legs:HomeLegs.respelled"),
    ("name", "kb.search.legs:HomeLegs.called"),
    ("words: the query", "kb.search.index.lexical:LexicalIndex._query"),
    ("words: the search", "kb.search.index.lexical:best_hits"),
    ("words: the ceiling", "kb.search.index.lexical_indexes:LexicalIndexes.ceiling"),
    (EMBEDDING, "kb.search.legs:HomeLegs.query_vector"),
    ("follow the vectors' index", "kb.search.legs:HomeLegs.follow_dense"),
    ("scan", "kb.search.index.dense:DenseIndex.search"),
    ("language of the query", "kb.search.legs:HomeLegs.reading"),
    ("merge, with cosines", "kb.search.engine:merge_legs"),
    ("fuse, with feedback", "kb.search.order:Ordering._fused_scores"),
    ("records", "kb.search.order:_rows"),
    ("near-duplicates", "kb.search.order:Ordering._diversified"),
    ("rarity", "kb.search.index.lexical_indexes:LexicalIndexes.rarity"),
    ("fit", "kb.search.engine:apply_fit"),
    ("hits", "kb.search.engine:build_hits"),
    ("freshness", "kb.search.hits:freshness_of"),
    ("freshness", "kb.search.hits:expect_freshness"),
    ("snippets", "kb.search.hits:snippet_of"),
    ("entities", "kb.search.engine:align"),
)


class Clocks:
    """Processor time by stage, each without the stages inside it."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inner = [0.0]

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a clock."""

        def timed(*args: Any, **options: Any) -> Any:
            self._inner.append(0.0)
            began = time.process_time()
            try:
                return function(*args, **options)
            finally:
                took = time.process_time() - began
                self.seconds[stage] += took - self._inner.pop()
                self._inner[-1] += took

        return timed


@contextmanager
def clocked(stages: Sequence[tuple[str, str]]) -> Iterator[Clocks]:
    """Clocks around those stages that this revision has."""
    clocks, before = Clocks(), []
    for stage, place in stages:
        module, _, path = place.partition(":")
        *outer, name = path.split(".")
        try:
            owner = importlib.import_module(module)
            for part in outer:
                owner = getattr(owner, part)
            function = getattr(owner, name)
        except (ImportError, AttributeError):
            # Another revision may have no such stage.
            continue
        before.append((owner, name, function))
        setattr(owner, name, clocks.around(stage, function))
    try:
        yield clocks
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def one_round(app: App, queries: Sequence[str], stages: Sequence[tuple[str, str]]) -> Any:
    """Milliseconds of each search without its embedding, and by stage of all together."""
    taken: list[float] = []
    with clocked(stages) as clocks:
        for query in queries:
            before = clocks.seconds[EMBEDDING]
            began = time.process_time()
            # Past the cache of results.
            app.searcher._searched(SearchRequest(query=query), OPERATOR)
            took = time.process_time() - began
            taken.append(1e3 * (took - (clocks.seconds[EMBEDDING] - before)))
    rest = sum(taken) - 1e3 * sum(s for stage, s in clocks.seconds.items() if stage != EMBEDDING)
    by_stage = {stage: 1e3 * seconds / len(queries) for stage, seconds in clocks.seconds.items()}
    return {"taken": taken, "stages": {**by_stage, REST: rest / len(queries)}}


def work(home: Path) -> None:
    """Search a round for each line of input, and answer with a line of JSON.

    The first line has the queries: another revision may have others.
    """
    embedding = [pair for pair in STAGES if pair[0] == EMBEDDING]
    queries = json.loads(sys.stdin.readline())
    with App.open(home, load([], []), create=False) as app:
        one_round(app, queries, embedding)
        for _ in sys.stdin:
            plain = one_round(app, queries[WARM_UP:], embedding)
            clocked_round = one_round(app, queries[WARM_UP:], STAGES)
            print(json.dumps({"taken": plain["taken"], "stages": clocked_round["stages"]}))
            sys.stdout.flush()


class Worker:
    """A process that searches with one revision."""

    def __init__(self, name: str, home: Path, count: int, env: dict[str, str]) -> None:
        self.name = name
        self.rounds: list[Any] = []
        import corpus

        argv = (sys.executable, __file__, "--worker", "--home", home)
        self._process = subprocess.Popen(
            argv,
            env={**env, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([*corpus.queries(count + WARM_UP)]) + "\n")

    def search(self) -> None:
        """One round."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.name}: exit {self._process.wait()}")
        self.rounds.append(json.loads(line))

    def end(self) -> None:
        """No more rounds."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def figures(self) -> dict[str, Any]:
        """Over all rounds, in milliseconds: of a stage the median of the rounds' means."""
        taken = sorted(ms for row in self.rounds for ms in row["taken"])
        stages = {
            stage: round(statistics.median(row["stages"].get(stage, 0.0) for row in self.rounds), 2)
            for stage in dict.fromkeys([*(stage for stage, _ in STAGES), REST])
        }
        return {
            "p50_ms": round(taken[len(taken) // 2], 2),
            "p95_ms": round(taken[-len(taken) // 20], 2),
            "stages": stages,
        }


def table(figures: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Lines for a person, a column for each revision."""
    yield "".join([f"{'ms of processor':28}", *(f"{name:>10}" for name in figures)])
    for name in ("p50_ms", "p95_ms"):
        cells = (f"{one[name]:10.2f}" for one in figures.values())
        yield "".join([f"{name.removesuffix('_ms'):28}", *cells])
    for stage in next(iter(figures.values()))["stages"]:
        cells = (f"{one['stages'][stage]:10.2f}" for one in figures.values())
        yield "".join([f"{stage:28}", *cells])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", nargs="?", help="the revision to compare this one with")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--scratch", type=Path, help="where the copies lie meanwhile")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.home)
        return
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        sides = [("before", options.before)] if options.before else []
        revisions, workers = [], []
        try:
            for name, of in (*sides, ("now", "HEAD")):
                # A revision may keep its indexes in another form.
                home = Path(scratch) / f"home-{name}"
                subprocess.run(["cp", "-r", "--reflink=auto", options.home, home], check=True)
                revisions.append(Revision(Path(scratch), name, of, home))
                workers.append(Worker(name, home, options.queries, revisions[-1].env))
            for _ in range(options.rounds):
                for worker in workers:
                    worker.search()
        finally:
            for worker in workers:
                worker.end()
            for revision in revisions:
                revision.remove()
    figures = {worker.name: worker.figures() for worker in workers}
    print(json.dumps(figures) if options.json else "\n".join(table(figures)))


if __name__ == "__main__":
    main()
