"""When is a source from, if its text does not say so? Dates of names and of files."""

import datetime as dt
import re
from typing import Final

from kb.model.doc import Kind
from kb.model.source import name_and_folders

_DAY: Final = r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)"


def date_in_name(source: str, kind: Kind) -> str | None:
    """The day in a file's name, as in `2026-11-22 Meeting.md` or `scan_20261122.pdf`."""
    if kind not in ("file", "notebook"):
        return None
    for match in re.finditer(_DAY, name_and_folders(source)[0]):
        try:
            return dt.date(int(match[1]), int(match[3]), int(match[4])).isoformat()
        except ValueError:
            continue
    return None


def local_time(seconds: int) -> str | None:
    """Seconds since the epoch as ISO 8601 in the zone of this machine; None for what is no time."""
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC).astimezone().isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return None
