"""The children that tests start."""

import signal
import subprocess
import sys
from pathlib import Path

from child_processes import finished

_TESTS = Path(__file__).resolve().parents[1]
_WITHIN = f"""
import signal, sys
sys.path.insert(0, {str(_TESTS)!r})
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
import conftest
conftest.take_signals()
from child_processes import finished
child = finished("import signal; print(signal.SIG_IGN in map(signal.getsignal, (1, 2, 15)))")
print(child.stdout, end="")
signal.raise_signal(signal.SIGINT)
signal.raise_signal(signal.SIGHUP)
print("went on")
"""


def test_children_have_default_signals() -> None:
    """A child of a test ignores none of the signals that end programs."""
    child = finished("import signal; print(*map(signal.getsignal, (1, 2, 15)), sep='\\n')")
    hangup, interrupt, end = child.stdout.splitlines()
    assert (hangup, end) == (str(signal.SIG_DFL), str(signal.SIG_DFL))
    assert "default_int_handler" in interrupt


def test_children_have_default_signals_under_nohup() -> None:
    """So it is where the tests are started with signals ignored; the tests still ignore them."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHIN], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("False\nwent on\n", "")
