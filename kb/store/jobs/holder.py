"""Who holds a job? A process, named so that its death can be told and its number not mistaken."""

import functools
import os
from pathlib import Path


@functools.cache
def _own_name(pid: int) -> str:
    return f"{_machine()}/{pid}/{_start_of(pid)}"


def holder_name() -> str:
    """This process: machine and boot, process number, and when it started."""
    return _own_name(os.getpid())


def is_gone(holder: str) -> bool:
    """Whether a holder on this machine has ended; False where it cannot be told."""
    machine, _, rest = holder.partition("/")
    pid, _, start = rest.partition("/")
    if machine != _machine() or not pid.isdigit() or not start:
        return False
    return _start_of(int(pid)) != start


@functools.cache
def _machine() -> str:
    # The boot, and the namespace in which the process number means something.
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    # Behind the command, which may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return "" if state in "ZX" else start
