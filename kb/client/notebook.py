"""Notes and jobs, as a server keeps them."""

import urllib.parse

from msgspec import Struct

from kb.client.http_client import ServerClient
from kb.knowledge.notebook import JobReport
from kb.knowledge.notebook.notes import checked_text
from kb.knowledge.notebook.repository import Logged
from kb.model.ids import JobId
from kb.operations.notes import ListedNote, Notes


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


def hand_in(client: ServerClient, data: bytes, hint: str | None, tags: tuple[str, ...]) -> JobId:
    """Hand in a note. Raises UsageError for what is no text, and what asking the server raises."""
    request = _HandedIn(content=checked_text(data), hint=hint, tags=tags)
    return client.post("/content", request, _Queued).job_id


def notes(client: ServerClient, tags: tuple[str, ...], limit: int) -> Notes:
    """The notes of a server that have all of these tags; a limit of 0 is none."""
    rows: list[ListedNote] = []
    cursor: str | None = ""
    while cursor is not None and (not limit or len(rows) < limit):
        query = (*(("tag", tag) for tag in tags), *([("cursor", cursor)] if cursor else ()))
        page = client.get("/v1/notes", Notes, query)
        rows += page.notes
        cursor = page.next_cursor
    return Notes(notes=tuple(rows[: limit or None]), total=page.total, next_cursor=None)


def note(client: ServerClient, path: str) -> bytes:
    """A note by its path. Raises NotOnServer, and what asking the server raises."""
    return client.get("/content", _Content, (("path", path),)).content.encode()


def commits_of(client: ServerClient, limit: int) -> list[Logged]:
    """The newest commits of the notebook, the newest first."""
    return client.get("/v1/notes/log", list[Logged], (("limit", str(limit)),))


def job(client: ServerClient, ident: str) -> JobReport:
    """How it stands with a job. Raises NotOnServer, and what asking the server raises."""
    return client.get(f"/v1/jobs/{urllib.parse.quote(ident, safe='')}", JobReport)


def jobs(client: ServerClient, limit: int) -> list[JobReport]:
    """Jobs that are not done, and the newest notes that are."""
    return client.get("/v1/jobs", _Jobs, (("limit", str(limit)),)).jobs


def tried_again(client: ServerClient, ident: str) -> JobReport:
    """Have a job that failed for good tried again, and say how it stands."""
    client.answer("POST", f"/v1/jobs/{urllib.parse.quote(ident, safe='')}/retry")
    return job(client, ident)
