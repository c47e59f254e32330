"""How it is told how far the notebook's remote has come."""

import datetime as dt
from typing import TYPE_CHECKING

from kb_cli.output import many

if TYPE_CHECKING:
    from kb.operations.notes import PushResult


def push_line(report: "PushResult") -> str:
    """The state in one line: how far behind, why, and when it is tried again."""
    if not report.behind:
        return f"{report.remote} has every commit"
    parts = [f"{report.remote} is {many(report.behind, 'commit')} behind"]
    if report.state != "pushed":
        parts.append(f"{report.state}: {report.last_error}")
    if report.next_ms is not None:
        when = dt.datetime.fromtimestamp(report.next_ms / 1000).astimezone()
        parts.append(f"tried again at {when.isoformat(' ', 'minutes')}")
    return "; ".join(parts)
