"""Start child processes of a test, with the package and the fakes on their path."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_TESTS: Final = Path(__file__).resolve().parent
TESTS_PATH: Final = os.pathsep.join([str(_TESTS.parent), str(_TESTS)])


def start(code: str, *args: object, **env: str) -> "subprocess.Popen[str]":
    """Start Python on `code`, its output and input on pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": TESTS_PATH, **env},
    )


def finished(code: str, *args: object, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run Python on `code` to its end, within a minute."""
    child = start(code, *args, **env)
    with child:
        try:
            stdout, stderr = child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
    return subprocess.CompletedProcess(child.args, child.returncode, stdout, stderr)
