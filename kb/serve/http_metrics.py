"""What was asked so far, counted: bounded by the routes, for no label comes from a request."""

import threading
from collections import Counter
from typing import Final

_BUCKETS_S: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """Counts requests by route, method and status; safe to share by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[float] = Counter()
        self._count = 0
        self._sum_s = 0.0
        self.busy = 0
        """Requests that are worked on now."""
        self.streams = 0
        """Answers that come piece by piece, and have not ended."""

    def observe(self, route: str, method: str, status: int, took_s: float) -> None:
        """One request that has ended; `route` and `method` are names of ours."""
        with self._lock:
            self._requests[route, method, status] += 1
            self._buckets.update(bound for bound in _BUCKETS_S if took_s <= bound)
            self._count += 1
            self._sum_s += took_s

    def lines(self) -> str:
        """The counts as Prometheus reads them, each line ended."""
        with self._lock:
            rows = ["# TYPE kb_http_requests_total counter"]
            rows += [
                f'kb_http_requests_total{{route="{route}",method="{method}",status="{status}"}} {n}'
                for (route, method, status), n in sorted(self._requests.items())
            ]
            rows.append("# TYPE kb_http_request_seconds histogram")
            rows += [
                f'kb_http_request_seconds_bucket{{le="{bound}"}} {self._buckets[bound]}'
                for bound in _BUCKETS_S
            ]
            rows += [
                f'kb_http_request_seconds_bucket{{le="+Inf"}} {self._count}',
                f"kb_http_request_seconds_sum {self._sum_s:.6f}",
                f"kb_http_request_seconds_count {self._count}",
                "# TYPE kb_http_busy gauge",
                f"kb_http_busy {self.busy}",
                "# TYPE kb_http_streams gauge",
                f"kb_http_streams {self.streams}",
            ]
        return "\n".join(rows) + "\n"
