"""What each test costs, for whoever makes the tests faster: `pytest --timings=FILE`.

One line of JSON a test: `wall_s` from the start of its setup to the end of its teardown,
`processor_s` of the process and of all that it started, and how many processes it started. The
cost of a fixture that several tests share is with the first of them.
`python tests/timings.py FILE...` ranks what was written.
"""

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import forked_commands
import pytest

_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_PROPERTY: Final = "timing"
_RANKED: Final = 40


class Timings:
    """Measures each test where it runs; writes where the reports arrive."""

    def __init__(self, path: str, *, writes: bool) -> None:
        self._started = 0
        sys.addaudithook(self._count)
        self._path = Path(path) if writes else None

    def _count(self, event: str, _args: object) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self._started += 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        self._before = self._now()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        try:
            return (yield)
        finally:
            spent = [
                after - before for after, before in zip(self._now(), self._before, strict=True)
            ]
            names = ("wall_s", "processor_s", "started")
            item.user_properties.append((_PROPERTY, dict(zip(names, spent, strict=True))))

    def _now(self) -> tuple[float, float, int]:
        return (
            time.monotonic(),
            processor_s(os.getpid()),
            self._started + forked_commands.Server.forks,
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._path is not None and report.when == "teardown":
            timing = dict(report.user_properties)[_PROPERTY]
            with self._path.open("a", encoding="utf-8") as file:
                print(json.dumps({"test": report.nodeid, **timing}), file=file)


def processor_s(root: int) -> float:
    """Processor time of a process and of all that descend from it, also of those that ended."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = Path("/proc", name, "stat").read_text(errors="replace")
            except OSError:
                continue
            fields = stat.rpartition(")")[2].split()
            ticks[int(name)] = sum(map(int, fields[11:15]))
            children[int(fields[1])].append(int(name))
    todo, total = [root], 0
    while todo:
        pid = todo.pop()
        total += ticks.get(pid, 0)
        todo += children[pid]
    return total * _TICK_S


def _report(paths: list[str]) -> None:
    rows = [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]
    for row in rows:
        row["waiting_s"] = row["wall_s"] - row["processor_s"]
    _table("all", {"all": rows})
    by_file: dict[str, list[Any]] = defaultdict(list)
    by_test: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        by_file[row["test"].partition("::")[0]].append(row)
        by_test[row["test"]].append(row)
    _table("files", by_file)
    _table("tests", by_test)


def _table(title: str, groups: dict[str, list[Any]]) -> None:
    names = ("wall_s", "processor_s", "waiting_s", "started")
    sums = {
        key: Counter({name: sum(row[name] for row in rows) for name in names})
        for key, rows in groups.items()
    }
    print(f"\n{'wall':>8} {'proc':>8} {'waiting':>8} {'started':>8}  {title}")
    for key in sorted(sums, key=lambda key: -max(sums[key][name] for name in names[:2]))[:_RANKED]:
        said = sums[key]
        print(*(f"{said[name]:8.2f}" for name in names[:3]), f"{said['started']:8d} ", key)


if __name__ == "__main__":
    _report(sys.argv[1:])
