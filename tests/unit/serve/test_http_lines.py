"""The log of the server: no request waits for who reads it."""

import io
import json
import threading

import pytest
from fakes import FakeClock

from kb.serve import access_log
from kb.serve.access_log import AccessLog


class Stopped(io.StringIO):
    """Takes nothing until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.goes_on = threading.Event()

    def write(self, text: str) -> int:
        self.asked.set()
        assert self.goes_on.wait(240)
        return super().write(text)


def test_what_nobody_reads_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many lines wait, later ones are dropped at once, and the log says how many."""
    monkeypatch.setattr(access_log, "_WAITING_MAX", 3)
    stream = Stopped()
    lines = AccessLog(stream, "json", FakeClock())
    lines.failed("first", ValueError())
    assert stream.asked.wait(120)
    for number in range(5):
        lines.failed(str(number), ValueError())
    assert not lines.close(0.01)
    stream.goes_on.set()
    assert lines.close(20)
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    told = [row.get("request_id", row.get("left_out")) for row in rows]
    assert told == ["first", 2, "0", "1", "2"]
