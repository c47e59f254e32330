"""What was asked so far, counted: bounded by the routes, for no label comes from a request."""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from kb.model.decoding import decode_json
from kb.serve.shared import SharedFile

_BUCKETS_S: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Counts(Struct, frozen=True, kw_only=True):
    """What one process has counted."""

    requests: tuple[tuple[str, str, int, int], ...] = ()
    """Route, method, status and how many."""
    buckets: tuple[int, ...] = (0,) * len(_BUCKETS_S)
    count: int = 0
    sum_s: float = 0.0
    busy: int = 0
    streams: int = 0
    starts: int = 0
    """How often the process was started."""


class MetricsFiles(Struct, frozen=True, kw_only=True):
    """Where each process of a server leaves its counts for the others."""

    files: tuple[SharedFile, ...]
    own: int
    """The number of this process."""
    starts: int = 1


class Metrics:
    """Counts requests by route, method and status; safe to share by threads.

    Of a server of several processes each `publish`es its counts, and `lines` are those of all. What
    a process counted that has crashed goes on counting, so no sum goes back.
    """

    def __init__(self, shared: MetricsFiles | None = None) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets = [0] * len(_BUCKETS_S)
        self._count = 0
        self._sum_s = 0.0
        self.busy = 0
        """Requests that are worked on now."""
        self.streams = 0
        """Answers that come piece by piece, and have not ended."""
        self._shared = shared
        self._published: tuple[int, ...] = ()
        if shared is not None:
            self._go_on(_read(shared.files[shared.own]))

    def _go_on(self, earlier: Counts) -> None:
        for route, method, status, count in earlier.requests:
            self._requests[route, method, status] = count
        self._buckets = list(earlier.buckets)
        self._count, self._sum_s = earlier.count, earlier.sum_s

    def observe(self, route: str, method: str, status: int, took_s: float) -> None:
        """One request that has ended; `route` and `method` are names of ours."""
        with self._lock:
            self._requests[route, method, status] += 1
            for place, bound in enumerate(_BUCKETS_S):
                self._buckets[place] += took_s <= bound
            self._count += 1
            self._sum_s += took_s

    def publish(self) -> None:
        """Leave the counts for the other processes, if there are any and something was counted."""
        shared = self._shared
        state = (self._count, self.busy, self.streams)
        if shared is None or self._published == state:
            return
        self._published = state
        file = shared.files[shared.own]
        with file.locked():
            file.replace(msgspec.json.encode(self._counts()))

    def _counts(self) -> Counts:
        with self._lock:
            return Counts(
                requests=tuple((*key, count) for key, count in self._requests.items()),
                buckets=tuple(self._buckets),
                count=self._count,
                sum_s=self._sum_s,
                busy=self.busy,
                streams=self.streams,
                starts=self._shared.starts if self._shared else 1,
            )

    def lines(self) -> str:
        """The counts of all processes as Prometheus reads them, each line ended."""
        if self._shared is None:
            each = [self._counts()]
        else:
            # Published first, so that what another process says next is never less.
            self.publish()
            each = [_read(file) for file in self._shared.files]
        return "\n".join(_lines(each)) + "\n"


def _read(file: SharedFile) -> Counts:
    with file.locked():
        data = file.read()
    return decode_json(data, Counts) if data else Counts()


def _lines(each: Sequence[Counts]) -> list[str]:
    requests: Counter[tuple[str, str, int]] = Counter()
    for counts in each:
        for route, method, status, number in counts.requests:
            requests[route, method, status] += number
    rows = ["# TYPE kb_http_requests_total counter"]
    rows += [
        f'kb_http_requests_total{{route="{route}",method="{method}",status="{status}"}} {n}'
        for (route, method, status), n in sorted(requests.items())
    ]
    rows.append("# TYPE kb_http_request_seconds histogram")
    rows += [
        f'kb_http_request_seconds_bucket{{le="{bound}"}} '
        f"{sum(counts.buckets[place] for counts in each)}"
        for place, bound in enumerate(_BUCKETS_S)
    ]
    count = sum(counts.count for counts in each)
    rows += [
        f'kb_http_request_seconds_bucket{{le="+Inf"}} {count}',
        f"kb_http_request_seconds_sum {sum(counts.sum_s for counts in each):.6f}",
        f"kb_http_request_seconds_count {count}",
        "# TYPE kb_http_busy gauge",
        f"kb_http_busy {sum(counts.busy for counts in each)}",
        "# TYPE kb_http_streams gauge",
        f"kb_http_streams {sum(counts.streams for counts in each)}",
        "# TYPE kb_process_requests_total counter",
    ]
    rows += [f'kb_process_requests_total{{process="{n}"}} {c.count}' for n, c in enumerate(each)]
    rows.append("# TYPE kb_process_starts_total counter")
    rows += [f'kb_process_starts_total{{process="{n}"}} {c.starts}' for n, c in enumerate(each)]
    return rows
