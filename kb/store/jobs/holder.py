"""Names for processes that hold jobs, by which others can tell that the process has died."""

import functools
import os
from pathlib import Path


@functools.cache
def _own_name(pid: int) -> str:
    return f"{_machine()}/{pid}/{_start_of(pid)}"


def holder_name() -> str:
    """The name of this process: machine and boot, process id, and start time."""
    return _own_name(os.getpid())


def is_gone(holder: str) -> bool:
    """Whether a holder on this machine has ended; False if unknown."""
    machine, _, rest = holder.partition("/")
    pid, _, start = rest.partition("/")
    if machine != _machine() or not pid.isdigit() or not start:
        return False
    return _start_of(int(pid)) != start


@functools.cache
def _machine() -> str:
    # The boot id, and the namespace in which process ids are unique.
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    # Skip the command, which may itself contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return "" if state in "ZX" else start
