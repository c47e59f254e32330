"""Notes and jobs, as a server keeps them."""

import urllib.parse

from msgspec import Struct

from kb.client.wire import Wire
from kb.knowledge.notebook import JobReport
from kb.knowledge.notebook.notes import checked_text
from kb.knowledge.notebook.repository import Logged
from kb.model.ids import JobId


class _HandedIn(Struct, frozen=True, kw_only=True):
    content: str
    hint: str | None
    tags: tuple[str, ...]


class _Queued(Struct, frozen=True, kw_only=True):
    job_id: JobId


class _Content(Struct, frozen=True, kw_only=True):
    content: str


class _Jobs(Struct, frozen=True, kw_only=True):
    jobs: list[JobReport]


def hand_in(wire: Wire, data: bytes, hint: str | None, tags: tuple[str, ...]) -> JobId:
    """Hand in a note. Raises UsageError for what is no text, and what the wire raises."""
    asked = _HandedIn(content=checked_text(data), hint=hint, tags=tags)
    return wire.post("/content", asked, _Queued).job_id


def note(wire: Wire, path: str) -> bytes:
    """A note by its path. Raises NotOnServer, and what the wire raises."""
    return wire.get("/content", _Content, (("path", path),)).content.encode()


def commits_of(wire: Wire, limit: int) -> list[Logged]:
    """The newest commits of the notebook, the newest first."""
    return wire.get("/v1/notes/log", list[Logged], (("limit", str(limit)),))


def job(wire: Wire, ident: str) -> JobReport:
    """How it stands with a job. Raises NotOnServer, and what the wire raises."""
    return wire.get(f"/v1/jobs/{urllib.parse.quote(ident, safe='')}", JobReport)


def jobs(wire: Wire, limit: int) -> list[JobReport]:
    """Jobs that are not done, and the newest notes that are."""
    return wire.get("/v1/jobs", _Jobs, (("limit", str(limit)),)).jobs


def tried_again(wire: Wire, ident: str) -> JobReport:
    """Have a job that failed for good tried again, and say how it stands."""
    wire.answer("POST", f"/v1/jobs/{urllib.parse.quote(ident, safe='')}/retry")
    return job(wire, ident)
